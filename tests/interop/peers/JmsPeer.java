// Qpid JMS as a peer: JmsPeer URL SCENARIO QUEUE prints one line of JSON with what it saw.
// A message is shown as [body, count]; count is JMSXDeliveryCount - 1, which is the delivery-count on the wire.

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.qpid.jms.JmsConnectionFactory;

public final class JmsPeer {
    private static final long PATIENCE = 10_000;
    // What Qpid JMS calls its extension of the acknowledge modes, and the property that chooses the outcome.
    private static final int INDIVIDUAL_ACKNOWLEDGE = 101;
    private static final String ACK_TYPE = "JMS_AMQP_ACK_TYPE";
    private static final int REJECTED = 2;
    private static final int RELEASED = 3;
    private static final int MODIFIED_FAILED = 4;
    private static final int MODIFIED_FAILED_UNDELIVERABLE = 5;

    private final String url;
    private final String userInfo;
    private final String queueName;
    private final List<String> seen = new ArrayList<>();

    private JmsPeer(String url, String queueName) {
        URI uri = URI.create(url);
        this.userInfo = uri.getUserInfo();
        this.url = "amqp://" + uri.getHost() + ":" + uri.getPort() + "?jms.prefetchPolicy.all=10&jms.sendTimeout=10000&jms.requestTimeout=10000";
        this.queueName = queueName;
    }

    public static void main(String[] arguments) throws Exception {
        JmsPeer peer = new JmsPeer(arguments[0], arguments[2]);
        try (Connection connection = peer.connect()) {
            peer.run(arguments[1], connection);
        }
        System.out.println("{" + String.join(", ", peer.seen) + "}");
    }

    private void run(String scenario, Connection connection) throws JMSException {
        switch (scenario) {
            case "send": send(connection); break;
            case "receive": receive(connection); break;
            case "outcomes": outcomes(connection); break;
            case "commit": commit(connection); break;
            case "rollback": rollback(connection); break;
            case "large": large(connection); break;
            case "recover": recover(connection); break;
            case "browse": browse(connection); break;
            case "request_reply": requestReply(connection); break;
            case "drop": drop(connection); break;
            default: throw new IllegalArgumentException(scenario);
        }
    }

    private Connection connect() throws JMSException {
        String[] credentials = userInfo == null ? new String[2] : userInfo.split(":");
        Connection connection = new JmsConnectionFactory(url).createConnection(credentials[0], credentials[1]);
        connection.start();
        return connection;
    }

    private void send(Connection connection) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        fill(session, queueName, "m1", "m2", "m3");
        seen.add("\"sent\": 3");
    }

    private void receive(Connection connection) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        see("received", drain(session, queueName));
    }

    private void outcomes(Connection connection) throws JMSException {
        fill(connection.createSession(), queueName, "m1", "m2", "m3", "m4");
        Session session = connection.createSession(false, INDIVIDUAL_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queueName));
        int[] outcomes = {REJECTED, RELEASED, MODIFIED_FAILED, MODIFIED_FAILED_UNDELIVERABLE};
        List<Message> first = take(consumer, 4);
        for (int i = 0; i < outcomes.length; i++) {
            first.get(i).setIntProperty(ACK_TYPE, outcomes[i]);
            first.get(i).acknowledge();
        }
        see("first", first);
        List<Message> again = take(consumer, 2);
        for (Message message : again) {
            message.acknowledge();
        }
        Message extra = consumer.receiveNoWait();
        see("again", again);
        see("extra", extra == null ? Collections.emptyList() : Arrays.asList(extra));
        try (Connection elsewhere = connect()) {
            see("elsewhere", drain(elsewhere.createSession(), queueName));
        }
    }

    private void commit(Connection connection) throws JMSException {
        Session plain = connection.createSession();
        fill(plain, queueName, "m1", "m2", "m3", "m4");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queueName));
        see("received", take(consumer, 2));
        fill(session, queueName + ".out", "a", "b");
        see("out_before", drain(plain, queueName + ".out"));
        session.commit();
        see("out_after", drain(plain, queueName + ".out"));
        // Qpid JMS detaches first and says afterwards that what it had prefetched is released.
        consumer.close();
        see("left", drain(plain, queueName));
    }

    private void rollback(Connection connection) throws JMSException {
        Session plain = connection.createSession();
        fill(plain, queueName, "m1", "m2", "m3", "m4", "m5");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queueName));
        see("received", take(consumer, 2));
        fill(session, queueName + ".out", "a");
        session.rollback();
        see("again", take(consumer, 5));
        session.commit();
        see("out", drain(plain, queueName + ".out"));
        see("left", drain(plain, queueName));
    }

    private void large(Connection connection) throws JMSException {
        Session session = connection.createSession();
        byte[] data = new byte[1 << 20];
        for (int i = 0; i < data.length; i++) {
            data[i] = (byte) (i % 251);
        }
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(data);
        Queue queue = session.createQueue(queueName);
        session.createProducer(queue).send(message);
        byte[] back = session.createConsumer(queue).receive(PATIENCE).getBody(byte[].class);
        seen.add("\"equal\": " + Arrays.equals(data, back));
    }

    private void recover(Connection connection) throws JMSException {
        fill(connection.createSession(), queueName, "m1", "m2", "m3");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queueName));
        see("received", take(consumer, 2));
        session.recover();
        List<Message> again = take(consumer, 3);
        see("again", again);
        again.get(2).acknowledge();
        session.close();
        see("left", drain(connection.createSession(), queueName));
    }

    private void browse(Connection connection) throws JMSException {
        Session session = connection.createSession();
        fill(session, queueName, "m1", "m2", "m3");
        List<Message> browsed = new ArrayList<>();
        try (QueueBrowser browser = session.createBrowser(session.createQueue(queueName))) {
            for (Object message : Collections.list(browser.getEnumeration())) {
                browsed.add((Message) message);
            }
        }
        see("browsed", browsed);
        see("received", drain(session, queueName));
    }

    private void requestReply(Connection connection) throws JMSException {
        Session client = connection.createSession();
        Queue answers = client.createTemporaryQueue();
        TextMessage request = client.createTextMessage("question");
        request.setJMSReplyTo(answers);
        client.createProducer(client.createQueue(queueName)).send(request);
        Session server = connection.createSession();
        Message asked = server.createConsumer(server.createQueue(queueName)).receive(PATIENCE);
        TextMessage answer = server.createTextMessage("answer to " + asked.getBody(String.class));
        answer.setJMSCorrelationID(asked.getJMSMessageID());
        // A producer without a destination of its own: the anonymous relay.
        server.createProducer(null).send(asked.getJMSReplyTo(), answer);
        Message answered = client.createConsumer(answers).receive(PATIENCE);
        see("answered", Arrays.asList(answered));
        seen.add("\"correlated\": " + request.getJMSMessageID().equals(answered.getJMSCorrelationID()));
    }

    // A session that ends with work undone. Qpid JMS rolls back, releases what is unread, and ends the session with credit
    // outstanding: what the broker sends it again in that moment is lost in the End, under the default outcome it asked for.
    private void drop(Connection connection) throws JMSException {
        Session plain = connection.createSession();
        fill(plain, queueName, "m1", "m2", "m3");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        see("received", take(session.createConsumer(session.createQueue(queueName)), 1));
        session.close();
        see("left", drain(plain, queueName));
    }

    private static void fill(Session session, String name, String... bodies) throws JMSException {
        try (MessageProducer producer = session.createProducer(session.createQueue(name))) {
            for (String body : bodies) {
                producer.send(session.createTextMessage(body));
            }
        }
    }

    private static List<Message> take(MessageConsumer consumer, int count) throws JMSException {
        List<Message> messages = new ArrayList<>();
        while (messages.size() < count) {
            Message message = consumer.receive(PATIENCE);
            if (message == null) {
                throw new IllegalStateException("only " + show(messages) + " came");
            }
            messages.add(message);
        }
        return messages;
    }

    private static List<Message> drain(Session session, String name) throws JMSException {
        List<Message> messages = new ArrayList<>();
        try (MessageConsumer consumer = session.createConsumer(session.createQueue(name))) {
            // With credit outstanding Qpid JMS drains the link before it says that there is nothing.
            for (Message message; (message = consumer.receiveNoWait()) != null;) {
                messages.add(message);
            }
        }
        return messages;
    }

    private void see(String name, List<Message> messages) throws JMSException {
        seen.add("\"" + name + "\": " + show(messages));
    }

    private static String show(List<Message> messages) throws JMSException {
        List<String> shown = new ArrayList<>();
        for (Message message : messages) {
            int count = message.getIntProperty("JMSXDeliveryCount") - 1;
            if (message.getJMSRedelivered() != (count > 0)) {
                throw new IllegalStateException("JMSRedelivered and JMSXDeliveryCount disagree on " + message);
            }
            shown.add("[\"" + message.getBody(String.class) + "\", " + count + "]");
        }
        return "[" + String.join(", ", shown) + "]";
    }
}
