import java.io.File;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;

/** An ActiveMQ Classic: port, then the folder of its KahaDB (in memory without one). Says "serving" when it does. */
public class ClassicBroker {
    public static void main(String[] arguments) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setBrokerName("classic");
        broker.setUseJmx(false);
        broker.setUseShutdownHook(true);
        broker.setSchedulerSupport(true);
        broker.setPersistent(arguments.length > 1);
        if (arguments.length > 1) {
            File folder = new File(arguments[1]);
            broker.setDataDirectoryFile(folder);
            broker.setSchedulerDirectoryFile(new File(folder, "scheduler"));
            KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
            store.setDirectory(new File(folder, "kahadb"));
            store.setJournalMaxFileLength(8 * 1024 * 1024);
            broker.setPersistenceAdapter(store);
        }
        broker.addConnector("amqp://127.0.0.1:" + arguments[0] + "?transport.transformer=jms");
        broker.start();
        broker.waitUntilStarted();
        System.out.println("serving");
        broker.waitUntilStopped();
    }
}
