// Qpid JMS as a peer for what is more than queues: FeaturePeer URL SCENARIO... prints for each scenario one line of JSON with its
// name and what it saw, bodies mostly. `features.py` does the same in Python; the expectations in `test_features.py` are for both.

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.qpid.jms.JmsConnectionFactory;

public final class FeaturePeer {
    private static final long PATIENCE = 10_000;

    private final String url;
    private final String unique = UUID.randomUUID().toString();
    private final List<Connection> connections = new ArrayList<>();
    private final Map<String, Object> seen = new LinkedHashMap<>();
    private Session session;
    private Topic topic;
    private Queue queue;

    private FeaturePeer(String url) {
        this.url = url + "?jms.sendTimeout=10000&jms.requestTimeout=10000&jms.closeTimeout=10000";
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 1; i < arguments.length; i++) {
            String line;
            try {
                line = json(new FeaturePeer(arguments[0]).run(arguments[i]));
            } catch (Exception error) {
                line = json(Collections.singletonMap("error", error.toString()));
            }
            System.out.println("{\"scenario\": " + json(arguments[i]) + ", \"seen\": " + line + "}");
        }
    }

    private Map<String, Object> run(String scenario) throws Exception {
        session = connect(null).createSession();
        topic = session.createTopic("features." + scenario + "." + unique);
        queue = session.createQueue("features." + scenario + "." + unique + ".queue");
        try {
            FeaturePeer.class.getDeclaredMethod(scenario).invoke(this);
        } catch (java.lang.reflect.InvocationTargetException thrown) {
            throw (Exception) thrown.getCause();
        } finally {
            for (Connection connection : connections) {
                connection.close();
            }
        }
        return seen;
    }

    // ------------------------------------------------------------------------------------------------ subscriptions

    private void non_durable() throws JMSException {
        publish("a");
        MessageConsumer one = session.createConsumer(topic);
        publish("b");
        MessageConsumer two = session.createConsumer(topic);
        publish("c");
        see("one", drain(one));
        see("two", drain(two));
    }

    private void durable() throws JMSException {
        Connection connection = connect("client-" + unique);
        Session own = connection.createSession();
        MessageConsumer consumer = own.createDurableConsumer(topic, "name");
        publish("a");
        see("first", drain(consumer));
        connection.close();
        publish("b", "c");
        own = connect("client-" + unique).createSession();
        consumer = own.createDurableConsumer(topic, "name");
        see("kept", drain(consumer));
        consumer.close();
        own.unsubscribe("name");
        publish("d");
        consumer = own.createDurableConsumer(topic, "name");
        see("anew", drain(consumer));
        consumer.close();
        own.unsubscribe("name");
    }

    private void durable_changed() throws JMSException {
        Session own = connect("client-" + unique).createSession();
        own.createDurableConsumer(topic, "name", "weight > 0", false).close();
        publishWeighed(1, 2);
        MessageConsumer consumer = own.createDurableConsumer(topic, "name", "weight > 1", false);
        publishWeighed(1, 3);
        see("other_selector", drain(consumer));
        consumer.close();
        publishWeighed(4);
        Topic other = own.createTopic(topic.getTopicName() + ".other");
        consumer = own.createDurableConsumer(other, "name", "weight > 1", false);
        see("other_topic", drain(consumer));
        consumer.close();
        own.unsubscribe("name");
    }

    private void unsubscribing() throws JMSException {
        Session own = connect("client-" + unique).createSession();
        MessageConsumer consumer = own.createDurableConsumer(topic, "name");
        see("active", refused(() -> own.unsubscribe("name")));
        consumer.close();
        own.unsubscribe("name");
        try {
            own.unsubscribe("name");
        } catch (InvalidDestinationException error) {
            see("unknown", "invalid destination");
        }
    }

    private void shared() throws JMSException {
        Session one = connect(null).createSession();
        Session two = connect(null).createSession();
        String name = "name-" + unique;
        MessageConsumer first = one.createSharedConsumer(topic, name);
        MessageConsumer second = two.createSharedConsumer(topic, name);
        MessageConsumer other = two.createSharedConsumer(topic, "other-" + unique);
        publish("a", "b", "c", "d");
        see("together", together(first, second));
        see("other", drain(other));
        first.close();
        publish("e");
        see("left", drain(second));
        second.close();
        publish("f");
        see("anew", drain(one.createSharedConsumer(topic, name)));
    }

    private void shared_durable() throws JMSException {
        shareDurably(connect(null), connect(null), "name-" + unique);
    }

    private void shared_durable_of_a_client() throws JMSException {
        Connection connection = connect("client-" + unique);
        shareDurably(connection, connection, "name");
    }

    private void shareDurably(Connection one, Connection two, String name) throws JMSException {
        Session session1 = one.createSession();
        Session session2 = two.createSession();
        MessageConsumer first = session1.createSharedDurableConsumer(topic, name);
        MessageConsumer second = session2.createSharedDurableConsumer(topic, name);
        publish("a", "b", "c", "d");
        see("together", together(first, second));
        first.close();
        second.close();
        publish("e", "f");
        MessageConsumer again = session2.createSharedDurableConsumer(topic, name);
        see("kept", drain(again));
        again.close();
        session1.unsubscribe(name);
        publish("g");
        again = session2.createSharedDurableConsumer(topic, name);
        see("anew", drain(again));
        again.close();
        session1.unsubscribe(name);
    }

    private void no_local() throws JMSException {
        Session own = connect("client-" + unique).createSession();
        MessageConsumer consumer = own.createConsumer(topic, null, true);
        own.createProducer(topic).send(own.createTextMessage("own"));
        publish("other's");
        see("received", drain(consumer));
    }

    // ------------------------------------------------------------------------------------------------ selectors, browsers

    private void selectors() throws JMSException {
        fillWeighed(1, 11, 2, 12, 3);
        MessageConsumer heavy = session.createConsumer(queue, "colour = 'red' AND weight > 10");
        see("heavy", drain(heavy));
        heavy.close();
        see("light", drain(session.createConsumer(queue)));
        MessageConsumer subscriber = session.createConsumer(topic, "weight BETWEEN 2 AND 3 OR colour LIKE 'bl_e'");
        publishWeighed(1, 2, 3, 4);
        see("published", drain(subscriber));
        try {
            session.createConsumer(queue, "weight >");
        } catch (InvalidSelectorException error) {
            see("bad", "invalid selector");
        }
    }

    private void browsers() throws JMSException {
        fillWeighed(1, 11, 2, 12);
        see("heavy", browse(session.createBrowser(queue, "weight > 10")));
        see("all", browse(session.createBrowser(queue)));
        see("received", drain(session.createConsumer(queue)));
        see("after", browse(session.createBrowser(queue)));
    }

    // ------------------------------------------------------------------------------------------------ temporary destinations

    private void temporary_queue() throws JMSException {
        TemporaryQueue own = session.createTemporaryQueue();
        Session elsewhere = connect(null).createSession();
        temporary(elsewhere, own, own::delete);
    }

    private void temporary_topic() throws JMSException {
        TemporaryTopic own = session.createTemporaryTopic();
        Session elsewhere = connect(null).createSession();
        temporary(elsewhere, own, own::delete);
    }

    private void temporary(Session elsewhere, Destination own, Action delete) throws JMSException {
        MessageConsumer consumer = session.createConsumer(own);
        elsewhere.createProducer(own).send(elsewhere.createTextMessage("a"));
        elsewhere.createProducer(null).send(own, elsewhere.createTextMessage("b"));
        see("received", drain(consumer));
        see("consumed_elsewhere", refused(() -> elsewhere.createConsumer(own)));
        see("deleted_in_use", refused(delete));
        consumer.close();
        delete.run();
        see("consumed_when_gone", refused(() -> session.createConsumer(own)));
    }

    // ------------------------------------------------------------------------------------------------ groups, delay

    private void groups() throws JMSException {
        List<MessageConsumer> consumers = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            consumers.add(session.createConsumer(queue));
        }
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 4; i++) {
            for (String group : new String[] {"a", "b", "c"}) {
                producer.send(grouped(group, i));
            }
        }
        Map<String, TreeSet<Integer>> owners = new TreeMap<>();
        Map<String, List<String>> bodies = new TreeMap<>();
        for (int i = 0; i < consumers.size(); i++) {
            for (String body : drain(consumers.get(i))) {
                owners.computeIfAbsent(body.substring(0, 1), group -> new TreeSet<>()).add(i);
                bodies.computeIfAbsent(body.substring(0, 1), group -> new ArrayList<>()).add(body);
            }
        }
        List<Integer> counts = new ArrayList<>();
        owners.values().forEach(of -> counts.add(of.size()));
        see("owners", counts);
        see("bodies", new ArrayList<>(bodies.values()));
        consumers.remove((int) owners.get("a").first()).close();
        producer.send(grouped("a", 4));
        see("left", drain(consumers.get(0)));
    }

    private Message grouped(String group, int number) throws JMSException {
        TextMessage message = session.createTextMessage(group + number);
        message.setStringProperty("JMSXGroupID", group);
        return message;
    }

    private void delay() throws JMSException {
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryDelay(400);
        producer.send(session.createTextMessage("later"));
        producer.setDeliveryDelay(0);
        producer.send(session.createTextMessage("now"));
        MessageConsumer consumer = session.createConsumer(queue);
        List<String> bodies = new ArrayList<>();
        bodies.add(consumer.receive(PATIENCE).getBody(String.class));
        Message late = consumer.receive(PATIENCE);
        see("early", System.currentTimeMillis() < late.getJMSDeliveryTime());
        bodies.add(late.getBody(String.class));
        see("received", bodies);
    }

    // ------------------------------------------------------------------------------------------------ steps

    private interface Action {
        void run() throws JMSException;
    }

    private static boolean refused(Action action) {
        try {
            action.run();
            return false;
        } catch (JMSException error) {
            return true;
        }
    }

    private Connection connect(String client) throws JMSException {
        Connection connection = new JmsConnectionFactory(url).createConnection();
        connections.add(connection);
        if (client != null) {
            connection.setClientID(client);
        }
        connection.start();
        return connection;
    }

    private void publish(String... bodies) throws JMSException {
        try (MessageProducer producer = session.createProducer(topic)) {
            for (String body : bodies) {
                producer.send(session.createTextMessage(body));
            }
        }
    }

    private void publishWeighed(int... weights) throws JMSException {
        sendWeighed(topic, weights);
    }

    private void fillWeighed(int... weights) throws JMSException {
        sendWeighed(queue, weights);
    }

    private void sendWeighed(Destination destination, int... weights) throws JMSException {
        try (MessageProducer producer = session.createProducer(destination)) {
            for (int weight : weights) {
                Message message = session.createTextMessage("w" + weight);
                message.setIntProperty("weight", weight);
                message.setStringProperty("colour", weight == 4 ? "blue" : "red");
                producer.send(message);
            }
        }
    }

    private static List<String> drain(MessageConsumer consumer) throws JMSException {
        List<String> bodies = new ArrayList<>();
        // With credit outstanding Qpid JMS drains the link before it says that there is nothing.
        for (Message message; (message = consumer.receiveNoWait()) != null;) {
            bodies.add(message.getBody(String.class));
        }
        return bodies;
    }

    private static List<String> together(MessageConsumer one, MessageConsumer two) throws JMSException {
        List<String> bodies = drain(one);
        bodies.addAll(drain(two));
        Collections.sort(bodies);
        return bodies;
    }

    private static List<String> browse(QueueBrowser browser) throws JMSException {
        List<String> bodies = new ArrayList<>();
        for (Object message : Collections.list(browser.getEnumeration())) {
            bodies.add(((Message) message).getBody(String.class));
        }
        browser.close();
        return bodies;
    }

    private void see(String name, Object value) {
        seen.put(name, value);
    }

    private static String json(Object value) {
        if (value instanceof Map) {
            StringJoiner shown = new StringJoiner(", ", "{", "}");
            ((Map<?, ?>) value).forEach((name, item) -> shown.add(json(name) + ": " + json(item)));
            return shown.toString();
        } else if (value instanceof List) {
            StringJoiner shown = new StringJoiner(", ", "[", "]");
            ((List<?>) value).forEach(item -> shown.add(json(item)));
            return shown.toString();
        } else if (value instanceof String) {
            return "\"" + ((String) value).replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\s", " ") + "\"";
        }
        return String.valueOf(value);
    }
}
