import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;

/** Prints every setting of Java's clients: `consumer NAME`, `producer NAME`, `admin NAME`. */
public class Names {
    public static void main(String[] arguments) {
        print("consumer", ConsumerConfig.configNames());
        print("producer", ProducerConfig.configNames());
        print("admin", AdminClientConfig.configNames());
    }

    private static void print(String client, Set<String> names) {
        new TreeSet<>(names).forEach(name -> System.out.println(client + " " + name));
    }
}
