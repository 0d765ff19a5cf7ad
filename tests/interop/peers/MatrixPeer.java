// Qpid JMS as the far end of the matrix: MatrixPeer URL IN OUT receives from the queue IN until a message says that it is the
// last, prints one line of JSON for each (the message as it came, and its own copy as it was sent), and sends the copy to OUT.
// A value is shown as [class, value]: floating point numbers as the octets of a double, octets in hexadecimal.

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.apache.qpid.proton.amqp.Binary;
import org.apache.qpid.proton.amqp.Decimal128;
import org.apache.qpid.proton.amqp.Decimal32;
import org.apache.qpid.proton.amqp.Decimal64;

public final class MatrixPeer {
    private static final long PATIENCE = 30_000;
    private static final String CASE = "case";
    private static final String LAST = "last";
    // How Qpid JMS is told, and tells, that an object is AMQP's and not serialised.
    private static final String TYPED = "JMS_AMQP_TYPED_ENCODING";

    private final Session session;
    private final MessageProducer producer;

    private MatrixPeer(Session session, MessageProducer producer) {
        this.session = session;
        this.producer = producer;
    }

    public static void main(String[] arguments) throws Exception {
        String options = "?jms.sendTimeout=10000&jms.requestTimeout=10000&jms.deserializationPolicy.allowList=*";
        try (Connection connection = new JmsConnectionFactory(arguments[0] + options).createConnection()) {
            connection.start();
            Session session = connection.createSession();
            MessageConsumer consumer = session.createConsumer(session.createQueue(arguments[1]));
            new MatrixPeer(session, session.createProducer(session.createQueue(arguments[2]))).answer(consumer);
        }
    }

    private void answer(MessageConsumer consumer) throws JMSException {
        for (Message came; (came = consumer.receive(PATIENCE)) != null;) {
            String name = came.getStringProperty(CASE);
            if (name.equals(LAST)) {
                return;
            }
            String line = "\"case\": " + text(name);
            try {
                line += ", \"came\": " + show(came);
                line += ", \"sent\": " + show(send(came));
            } catch (JMSException | RuntimeException error) {
                line += ", \"error\": " + text(error.toString());
            }
            System.out.println("{" + line + "}");
        }
        throw new IllegalStateException("the last message did not come");
    }

    // ------------------------------------------------------------------------------------------------ the copy

    private Message send(Message came) throws JMSException {
        Message copy = copyOfBody(came);
        for (Object name : Collections.list(came.getPropertyNames())) {
            String property = (String) name;
            if (!property.equals("JMSXDeliveryCount") && !property.equals(TYPED)) {
                copy.setObjectProperty(property, came.getObjectProperty(property));
            }
        }
        // A message without a correlation id is answered as a request is.
        String correlation = came.getJMSCorrelationID();
        copy.setJMSCorrelationID(correlation == null ? came.getJMSMessageID() : correlation);
        copy.setJMSReplyTo(came.getJMSReplyTo());
        copy.setJMSType(came.getJMSType());
        long left = came.getJMSExpiration() == 0 ? 0 : came.getJMSExpiration() - came.getJMSTimestamp();
        long delay = came.getJMSDeliveryTime() - came.getJMSTimestamp();
        producer.setDeliveryDelay(Math.max(delay, 0));
        producer.send(copy, came.getJMSDeliveryMode(), came.getJMSPriority(), left);
        return copy;
    }

    private Message copyOfBody(Message came) throws JMSException {
        if (came instanceof TextMessage) {
            return session.createTextMessage(((TextMessage) came).getText());
        } else if (came instanceof BytesMessage) {
            BytesMessage copy = session.createBytesMessage();
            copy.writeBytes(octets((BytesMessage) came));
            return copy;
        } else if (came instanceof MapMessage) {
            MapMessage copy = session.createMapMessage();
            for (Object name : Collections.list(((MapMessage) came).getMapNames())) {
                copy.setObject((String) name, ((MapMessage) came).getObject((String) name));
            }
            return copy;
        } else if (came instanceof StreamMessage) {
            StreamMessage copy = session.createStreamMessage();
            for (Object item : items((StreamMessage) came)) {
                copy.writeObject(item);
            }
            return copy;
        } else if (came instanceof ObjectMessage) {
            ObjectMessage copy = session.createObjectMessage();
            // The case that is about serialised objects has one, whatever came.
            if (!came.getStringProperty(CASE).startsWith("serialised")) {
                copy.setBooleanProperty(TYPED, true);
            }
            Serializable object = ((ObjectMessage) came).getObject();
            boolean taken = object == null || object instanceof String || object instanceof Map || object instanceof List;
            // Qpid JMS reads any value of AMQP's, but writes others than these inside a list only.
            copy.setObject(taken ? object : new ArrayList<>(Collections.singletonList(object)));
            return copy;
        }
        return session.createMessage();
    }

    private static byte[] octets(BytesMessage message) throws JMSException {
        byte[] octets = new byte[(int) message.getBodyLength()];
        message.reset();
        message.readBytes(octets);
        message.reset();
        return octets;
    }

    private static List<Object> items(StreamMessage message) throws JMSException {
        List<Object> items = new ArrayList<>();
        message.reset();
        try {
            while (true) {
                items.add(message.readObject());
            }
        } catch (MessageEOFException end) {
            message.reset();
            return items;
        }
    }

    // ------------------------------------------------------------------------------------------------ what is shown

    private static String show(Message message) throws JMSException {
        StringJoiner shown = new StringJoiner(", ", "{", "}");
        shown.add("\"type\": " + text(kind(message)));
        shown.add("\"body\": " + body(message));
        Map<String, Object> properties = new TreeMap<>();
        for (Object name : Collections.list(message.getPropertyNames())) {
            properties.put((String) name, message.getObjectProperty((String) name));
        }
        properties.remove("JMSXDeliveryCount");
        properties.remove(TYPED);
        shown.add("\"properties\": " + entries(properties));
        shown.add("\"message_id\": " + text(message.getJMSMessageID()));
        shown.add("\"correlation_id\": " + text(message.getJMSCorrelationID()));
        shown.add("\"correlation_octets\": " + correlationOctets(message));
        shown.add("\"reply_to\": " + destination(message.getJMSReplyTo()));
        shown.add("\"destination\": " + destination(message.getJMSDestination()));
        shown.add("\"delivery_mode\": " + message.getJMSDeliveryMode());
        shown.add("\"priority\": " + message.getJMSPriority());
        shown.add("\"jms_type\": " + text(message.getJMSType()));
        shown.add("\"expiration\": " + message.getJMSExpiration());
        shown.add("\"timestamp\": " + message.getJMSTimestamp());
        shown.add("\"delivery_time\": " + message.getJMSDeliveryTime());
        shown.add("\"redelivered\": " + message.getJMSRedelivered());
        return shown.toString();
    }

    private static String kind(Message message) {
        Class<?>[] kinds = {TextMessage.class, BytesMessage.class, MapMessage.class, StreamMessage.class, ObjectMessage.class};
        for (Class<?> kind : kinds) {
            if (kind.isInstance(message)) {
                return kind.getSimpleName();
            }
        }
        return "Message";
    }

    private static String body(Message message) throws JMSException {
        if (message instanceof TextMessage) {
            return value(((TextMessage) message).getText());
        } else if (message instanceof BytesMessage) {
            // One that has just been written is in its write-only state until it is reset.
            ((BytesMessage) message).reset();
            return value(octets((BytesMessage) message));
        } else if (message instanceof MapMessage) {
            Map<String, Object> entries = new TreeMap<>();
            for (Object name : Collections.list(((MapMessage) message).getMapNames())) {
                entries.put((String) name, ((MapMessage) message).getObject((String) name));
            }
            return entries(entries);
        } else if (message instanceof StreamMessage) {
            return list(items((StreamMessage) message));
        } else if (message instanceof ObjectMessage) {
            Serializable object = ((ObjectMessage) message).getObject();
            return value(object);
        }
        return "null";
    }

    private static String correlationOctets(Message message) {
        try {
            byte[] octets = message.getJMSCorrelationIDAsBytes();
            return octets == null ? "null" : text(hexadecimal(octets));
        } catch (JMSException error) {
            return "null";
        }
    }

    private static String destination(Destination destination) throws JMSException {
        if (destination == null) {
            return "null";
        }
        String name = destination instanceof Queue ? ((Queue) destination).getQueueName() : ((jakarta.jms.Topic) destination).getTopicName();
        String kind = destination instanceof TemporaryQueue ? "TemporaryQueue"
                : destination instanceof TemporaryTopic ? "TemporaryTopic"
                : destination instanceof Queue ? "Queue" : "Topic";
        return "[" + text(kind) + ", " + text(name) + "]";
    }

    private static String value(Object value) {
        if (value == null) {
            return "null";
        } else if (value instanceof Map) {
            return "[\"Map\", " + entries((Map<?, ?>) value) + "]";
        } else if (value instanceof List) {
            return "[\"List\", " + list((List<?>) value) + "]";
        }
        return "[" + text(value.getClass().getSimpleName()) + ", " + scalar(value) + "]";
    }

    private static String scalar(Object value) {
        if (value instanceof Float || value instanceof Double) {
            return text(String.format("%016x", Double.doubleToRawLongBits(((Number) value).doubleValue())));
        } else if (value instanceof byte[]) {
            return text(hexadecimal((byte[]) value));
        } else if (value instanceof Binary) {
            return text(hexadecimal(((Binary) value).getArray()));
        } else if (value instanceof Date) {
            return text(Long.toString(((Date) value).getTime()));
        } else if (value instanceof Decimal32) {
            return text(String.format("%08x", ((Decimal32) value).getBits()));
        } else if (value instanceof Decimal64) {
            return text(String.format("%016x", ((Decimal64) value).getBits()));
        } else if (value instanceof Decimal128) {
            return text(String.format("%016x%016x", ((Decimal128) value).getMostSignificantBits(), ((Decimal128) value).getLeastSignificantBits()));
        }
        return text(value.toString());
    }

    private static String entries(Map<?, ?> map) {
        StringJoiner shown = new StringJoiner(", ", "{", "}");
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            shown.add(text(entry.getKey().toString()) + ": " + value(entry.getValue()));
        }
        return shown.toString();
    }

    private static String list(List<?> items) {
        StringJoiner shown = new StringJoiner(", ", "[", "]");
        for (Object item : items) {
            shown.add(value(item));
        }
        return shown.toString();
    }

    private static String hexadecimal(byte[] octets) {
        StringBuilder shown = new StringBuilder();
        for (byte octet : octets) {
            shown.append(String.format("%02x", octet));
        }
        return shown.toString();
    }

    private static String text(String value) {
        if (value == null) {
            return "null";
        }
        StringBuilder shown = new StringBuilder("\"");
        for (char unit : value.toCharArray()) {
            boolean plain = unit >= ' ' && unit <= '~' && unit != '"' && unit != '\\';
            shown.append(plain ? String.valueOf(unit) : String.format("\\u%04x", (int) unit));
        }
        return shown.append('"').toString();
    }
}
