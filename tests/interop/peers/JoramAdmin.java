// What the JORAM conformance tests ask of a provider before and after each test, for Qpid JMS and any AMQP broker: names are
// bound, nodes come into being when somebody attaches, and a deleted queue is emptied. The URL is the system property jmsish.url.

import java.util.Hashtable;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.naming.Context;
import javax.naming.InitialContext;
import javax.naming.NamingException;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.objectweb.jtests.jms.admin.Admin;

public final class JoramAdmin implements Admin {
    private static final String URL = System.getProperty("jmsish.url");
    private static final Hashtable<String, String> NAMES = new Hashtable<>();
    private static Connection connection;

    static {
        NAMES.put(Context.INITIAL_CONTEXT_FACTORY, "org.apache.qpid.jms.jndi.JmsInitialContextFactory");
    }

    @Override
    public String getName() {
        return "Qpid JMS";
    }

    @Override
    public Context createContext() throws NamingException {
        return new InitialContext(NAMES);
    }

    @Override
    public void createConnectionFactory(String name) {
        NAMES.put("connectionfactory." + name, URL);
        NAMES.put("property.connectionfactory." + name + ".username", "guest");
        NAMES.put("property.connectionfactory." + name + ".password", "guest");
    }

    @Override
    public void createQueueConnectionFactory(String name) {
        createConnectionFactory(name);
    }

    @Override
    public void createTopicConnectionFactory(String name) {
        createConnectionFactory(name);
    }

    @Override
    public void createQueue(String name) {
        NAMES.put("queue." + name, name);
    }

    @Override
    public void createTopic(String name) {
        NAMES.put("topic." + name, name);
    }

    @Override
    public void deleteQueue(String name) {
        NAMES.remove("queue." + name);
        try (Session session = connected().createSession(false, Session.AUTO_ACKNOWLEDGE);
                MessageConsumer consumer = session.createConsumer(session.createQueue(name))) {
            while (consumer.receiveNoWait() != null) {
                // Taken off and forgotten.
            }
        } catch (JMSException error) {
            throw new IllegalStateException(name + " cannot be emptied", error);
        }
    }

    @Override
    public void deleteTopic(String name) {
        NAMES.remove("topic." + name);
    }

    @Override
    public void deleteConnectionFactory(String name) {
        NAMES.keySet().removeIf(key -> key.contains("connectionfactory." + name));
    }

    @Override
    public void deleteQueueConnectionFactory(String name) {
        deleteConnectionFactory(name);
    }

    @Override
    public void deleteTopicConnectionFactory(String name) {
        deleteConnectionFactory(name);
    }

    // One for all tests: the process ends with them.
    private static Connection connected() throws JMSException {
        if (connection == null) {
            connection = new JmsConnectionFactory("guest", "guest", URL).createConnection();
            connection.start();
        }
        return connection;
    }

    @Override
    public void start() {
    }

    @Override
    public void stop() {
    }

    @Override
    public void startServer() {
    }

    @Override
    public void stopServer() {
    }
}
