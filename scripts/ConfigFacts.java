import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

import com.fasterxml.jackson.databind.ObjectMapper;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Prints the facts of every configuration key that Kafka's broker knows, as JSON: type, default, what values are
 * allowed, how it can be changed, what it stands in for. No prose.
 */
public final class ConfigFacts {
    public static void main(String[] ignored) throws Exception {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("topic", keys(LogConfig.configDefCopy()));
        Map<String, Map<String, Object>> broker = keys(kafka.server.KafkaConfig.configDef());
        keys(QuotaConfig.brokerQuotaConfigs()).forEach((name, facts) -> {
            facts.put("only_dynamic", true);
            broker.put(name, facts);
        });
        DynamicBrokerConfig.dynamicConfigUpdateModes().forEach((name, mode) -> broker.get(name).put("dynamic", mode));
        all.put("broker", broker);
        Map<String, Map<String, Object>> group = keys(GroupConfig.CONFIG_DEF);
        group.forEach((name, facts) -> GroupConfig.brokerSynonym(name).ifPresent(other -> facts.put("synonym", other)));
        all.put("group", group);
        all.put("client_metrics", keys(ClientMetricsConfigs.configDef()));
        all.put("client_quota", keys(QuotaConfig.userAndClientQuotaConfigs()));
        all.put("ip_quota", keys(QuotaConfig.ipConfigs()));
        Map<String, Object> synonyms = new TreeMap<>();
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((topic, names) -> {
            List<Object> told = new ArrayList<>();
            for (ConfigSynonym name : names)
                told.add(List.of(name.name(), factor(name)));
            synonyms.put(topic, told);
        });
        all.put("topic_synonyms", synonyms);
        System.out.println(new ObjectMapper().writeValueAsString(all));
    }

    /** What a synonym's value is multiplied with: hours and minutes become milliseconds. */
    private static long factor(ConfigSynonym synonym) {
        String one = synonym.converter().apply("1");
        return one.equals("1") ? 1 : Long.parseLong(one);
    }

    private static Map<String, Map<String, Object>> keys(ConfigDef definition) {
        Map<String, Map<String, Object>> all = new TreeMap<>();
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            Map<String, Object> facts = new LinkedHashMap<>();
            facts.put("type", key.type.name().toLowerCase());
            if (key.hasDefault())
                facts.put("default", ConfigDef.convertToString(key.defaultValue, key.type));
            if (key.validator != null)
                facts.putAll(check(key.validator));
            if (key.internalConfig)
                facts.put("internal", true);
            all.put(key.name, facts);
        }
        return all;
    }

    private static Map<String, Object> check(ConfigDef.Validator validator) {
        Map<String, Object> facts = new LinkedHashMap<>();
        if (validator instanceof ConfigDef.Range) {
            put(facts, "min", get(validator, "min"));
            put(facts, "max", get(validator, "max"));
        } else if (validator instanceof ConfigDef.ValidString) {
            facts.put("in", get(validator, "validStrings"));
        } else if (validator instanceof ConfigDef.CaseInsensitiveValidString) {
            facts.put("in_any_case", List.copyOf(new java.util.TreeSet<>((java.util.Collection<?>) get(validator, "validStrings"))));
        } else if (validator instanceof ConfigDef.ValidList) {
            List<?> valid = (List<?>) get(get(validator, "validString"), "validStrings");
            if (!valid.isEmpty())
                facts.put("in", valid);
            facts.put("distinct", true);
            if (!(boolean) get(validator, "isEmptyAllowed"))
                facts.put("not_empty", true);
        } else if (validator instanceof ConfigDef.NonEmptyString) {
            facts.put("not_empty", true);
        } else if (!(validator instanceof ConfigDef.NonNullValidator)) {
            // Its own class, or a lambda that tells itself by what it prints.
            String name = validator.getClass().getName();
            facts.put("check", name.contains("Lambda") ? validator.toString() : name.substring(Math.max(name.lastIndexOf('.'), name.lastIndexOf('$')) + 1));
        }
        return facts;
    }

    private static void put(Map<String, Object> facts, String name, Object value) {
        if (value != null)
            facts.put(name, value);
    }

    private static Object get(Object object, String field) {
        try {
            Field found = object.getClass().getDeclaredField(field);
            found.setAccessible(true);
            return found.get(object);
        } catch (ReflectiveOperationException failure) {
            throw new IllegalStateException(object.getClass() + " has changed", failure);
        }
    }

    private ConfigFacts() { }
}
