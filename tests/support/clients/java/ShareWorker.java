import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group: TOPIC KEY=VALUE… are the topic and the consumer's settings. What it does with a record is in
 * the record's value: reject…, release… (the first time), renew… (once, and then it is accepted), hold… (nothing, ever, if
 * it is called victim); anything else is accepted. It says on standard output what it was given ("got DELIVERY VALUE") and what has been
 * acknowledged ("ACTION VALUE"); it ends when its standard input does.
 */
public final class ShareWorker {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("share.acknowledgement.mode", "explicit");
        for (String setting : Arrays.asList(arguments).subList(1, arguments.length)) {
            String[] parts = setting.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        StringDeserializer text = new StringDeserializer();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings, text, text)) {
            consumer.subscribe(List.of(arguments[0]));
            say("subscribed");
            Map<String, Boolean> renewed = new HashMap<>();
            while (System.in.available() == 0) {
                Map<String, AcknowledgeType> done = new HashMap<>();
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    String value = record.value();
                    if (!Boolean.TRUE.equals(renewed.get(value))) {
                        say("got " + record.deliveryCount().orElse((short) 0) + " " + value);
                    }
                    AcknowledgeType action = AcknowledgeType.ACCEPT;
                    if (value.startsWith("hold") && settings.getProperty("client.id").startsWith("victim")) {
                        Thread.sleep(3_600_000);
                    } else if (value.startsWith("reject")) {
                        action = AcknowledgeType.REJECT;
                    } else if (value.startsWith("release") && record.deliveryCount().orElse((short) 1) == 1) {
                        action = AcknowledgeType.RELEASE;
                    } else if (value.startsWith("renew") && renewed.put(value, true) == null) {
                        action = AcknowledgeType.RENEW;
                    }
                    consumer.acknowledge(record, action);
                    done.put(value, action);
                }
                if (done.isEmpty()) {
                    continue;
                }
                boolean failed = false;
                for (Map.Entry<TopicIdPartition, Optional<KafkaException>> one : consumer.commitSync().entrySet()) {
                    if (one.getValue().isPresent()) {
                        failed = true;
                        say("failed " + one.getKey() + " " + one.getValue().get());
                    }
                }
                if (!failed) {
                    done.forEach((value, action) -> say(action + " " + value));
                }
            }
        }
        say("closed");
    }

    private static synchronized void say(String words) {
        System.out.println(words);
        System.out.flush();
    }
}
