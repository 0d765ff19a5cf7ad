// Qpid JMS as a program of the benchmarks: JmsBench URL; lines as clients/protocol.py says.

import com.sun.management.OperatingSystemMXBean;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.jms.JmsConnectionFactory;

public final class JmsBench {
    private static final String TEXT = "x".repeat(100);
    private static final int BATCH = 10;
    private static final long PATIENCE = 30_000;
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final String url;
    private long wall;
    private long cpu;

    private JmsBench(String url) {
        this.url = url;
    }

    public static void main(String[] arguments) throws Exception {
        JmsBench bench = new JmsBench(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            try (Connection connection = new JmsConnectionFactory(bench.url).createConnection()) {
                connection.start();
                bench.run(words[0], connection, Integer.parseInt(words[1]), words[2]);
            }
            System.out.printf(Locale.ROOT, "{\"seconds\": %.6f, \"cpu\": %.6f}%n", bench.wall / 1e9, bench.cpu / 1e9);
            System.out.flush();
        }
    }

    private void run(String work, Connection connection, int count, String queue) throws Exception {
        switch (work) {
            case "async_send": asyncSend(connection, count, queue); break;
            case "completion_send": completionSend(connection, count, queue); break;
            case "receive": receive(connection, count, queue); break;
            case "sync_send": syncSend(connection, count, queue); break;
            case "transacted_examples":
            case "transacted": transacted(connection, count, queue); break;
            case "request_reply": requestReply(connection, count, queue); break;
            default: throw new IllegalArgumentException(work);
        }
    }

    private void start() {
        cpu = -SYSTEM.getProcessCpuTime();
        wall = -System.nanoTime();
    }

    private void stop() {
        wall += System.nanoTime();
        cpu += SYSTEM.getProcessCpuTime();
    }

    // Non-persistent sends do not wait; the last one does, and its outcome follows all others.
    private void asyncSend(Connection connection, int count, String queue) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        start();
        for (int i = 1; i < count; i++) {
            producer.send(session.createTextMessage(TEXT));
        }
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        producer.send(session.createTextMessage(TEXT));
        stop();
    }

    private void completionSend(Connection connection, int count, String queue) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        CountDownLatch done = new CountDownLatch(count);
        CompletionListener completed = new CompletionListener() {
            @Override public void onCompletion(Message message) {
                done.countDown();
            }

            @Override public void onException(Message message, Exception error) {
                throw new IllegalStateException(error);
            }
        };
        start();
        for (int i = 0; i < count; i++) {
            producer.send(session.createTextMessage(TEXT), completed);
        }
        if (!done.await(PATIENCE, TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException(done.getCount() + " outcomes missing");
        }
        stop();
    }

    private void receive(Connection connection, int count, String queue) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        start();
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        for (int i = 0; i < count; i++) {
            take(consumer);
        }
        consumer.close();
        stop();
    }

    private void syncSend(Connection connection, int count, String queue) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        start();
        for (int i = 0; i < count; i++) {
            producer.send(session.createTextMessage(TEXT));
        }
        stop();
    }

    private void transacted(Connection connection, int count, String queue) throws JMSException {
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        MessageProducer producer = session.createProducer(session.createQueue(queue + ".out"));
        start();
        for (int i = 0; i < count; i++) {
            for (int j = 0; j < BATCH; j++) {
                take(consumer);
                producer.send(session.createTextMessage(TEXT));
            }
            session.commit();
        }
        stop();
    }

    private void requestReply(Connection connection, int count, String queue) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        TemporaryQueue answers = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(answers);
        start();
        for (int i = 0; i < count; i++) {
            TextMessage request = session.createTextMessage(TEXT);
            request.setJMSReplyTo(answers);
            producer.send(request);
            take(consumer);
        }
        stop();
    }

    private static void take(MessageConsumer consumer) throws JMSException {
        TextMessage message = (TextMessage) consumer.receive(PATIENCE);
        if (message == null || !TEXT.equals(message.getText())) {
            throw new IllegalStateException("received " + message);
        }
    }
}
