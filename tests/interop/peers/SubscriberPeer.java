// Qpid JMS as a subscriber: SubscriberPeer URL reads commands, one a line, fields between tabs, and answers each with one line.
//
//   take         client id or -, kind, topic, name, selector or -, how many at least     the bodies between commas
//   unsubscribe  client id or -, name
//   publish      client id or -, topic, body, colour
//
// An answer begins with `ok` or with `error` and the class of the exception.

import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import org.apache.qpid.jms.JmsConnectionFactory;

public final class SubscriberPeer {
    private static String url;

    public static void main(String[] arguments) throws Exception {
        url = arguments[0] + "?jms.sendTimeout=10000&jms.requestTimeout=10000&jms.closeTimeout=10000";
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                answer = ("ok " + act(line.split("\t"))).trim();
            } catch (Exception error) {
                answer = "error " + error.getClass().getSimpleName() + " " + error.getMessage().replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static String act(String[] command) throws Exception {
        Connection connection = new JmsConnectionFactory(url).createConnection();
        try {
            if (!command[1].equals("-")) {
                connection.setClientID(command[1]);
            }
            connection.start();
            Session session = connection.createSession();
            if (command[0].equals("take")) {
                return take(session, command[2], session.createTopic(command[3]), command[4], command[5], Integer.parseInt(command[6]));
            }
            if (command[0].equals("unsubscribe")) {
                session.unsubscribe(command[2]);
                return "";
            }
            TextMessage message = session.createTextMessage(command[3]);
            message.setStringProperty("colour", command[4]);
            session.createProducer(session.createTopic(command[2])).send(message);
            return "";
        } finally {
            connection.close();
        }
    }

    private static String take(Session session, String kind, Topic topic, String name, String text, int count) throws Exception {
        String selector = text.equals("-") ? null : text;
        MessageConsumer consumer;
        if (kind.equals("durable")) {
            consumer = session.createDurableConsumer(topic, name, selector, false);
        } else {
            consumer = session.createSharedDurableConsumer(topic, name, selector);
        }
        List<String> bodies = new ArrayList<>();
        while (true) {
            // What is there is waited for: not every broker has it at hand at once.
            Message message = bodies.size() < count ? consumer.receive(30000) : consumer.receiveNoWait();
            if (message == null) {
                break;
            }
            bodies.add(message.getBody(String.class) + (message.getJMSRedelivered() ? "!" : ""));
        }
        consumer.close();
        return String.join(",", bodies);
    }
}
