import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.storage.internals.log.RecordValidationException;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;

/** An exception as an answer: its class, its words, and the protocol error a client would be told. */
final class Failure {
    static Map<String, Object> describe(Throwable thrown) {
        while ((thrown instanceof InvocationTargetException || thrown instanceof ExecutionException) && thrown.getCause() != null)
            thrown = thrown.getCause();
        Map<String, Object> failure = new LinkedHashMap<>();
        Throwable named = thrown;
        if (thrown instanceof RecordValidationException) {
            RecordValidationException invalid = (RecordValidationException) thrown;
            named = invalid.invalidException();
            List<Object> records = new ArrayList<>();
            for (ProduceResponse.RecordError error : invalid.recordErrors())
                records.add(Json.list(error.batchIndex, error.message));
            failure.put("record_errors", records);
        }
        failure.put("class", thrown.getClass().getName());
        failure.put("cause", named.getClass().getName());
        failure.put("message", String.valueOf(named.getMessage()));
        failure.put("code", Errors.forException(named).name());
        StringWriter trace = new StringWriter();
        thrown.printStackTrace(new PrintWriter(trace));
        failure.put("trace", trace.toString());
        return failure;
    }

    private Failure() { }
}
