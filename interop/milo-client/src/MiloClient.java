// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Eclipse Milo as a client of a Taktwerk server: events, alarms, history, nodes.
//   java -cp 'lib/*:classes' MiloClient operate|change URL     the servers of milo.sh
//
// Prints a line for each check and `count: N passed, M failed`, and ends with 1 if one failed.

import static org.eclipse.milo.opcua.stack.core.types.builtin.unsigned.Unsigned.ubyte;
import static org.eclipse.milo.opcua.stack.core.types.builtin.unsigned.Unsigned.uint;
import static org.eclipse.milo.opcua.stack.core.types.builtin.unsigned.Unsigned.ushort;

import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.eclipse.milo.opcua.sdk.client.OpcUaClient;
import org.eclipse.milo.opcua.sdk.client.subscriptions.OpcUaMonitoredItem;
import org.eclipse.milo.opcua.sdk.client.subscriptions.OpcUaSubscription;
import org.eclipse.milo.opcua.stack.core.AttributeId;
import org.eclipse.milo.opcua.stack.core.NodeIds;
import org.eclipse.milo.opcua.stack.core.StatusCodes;
import org.eclipse.milo.opcua.stack.core.types.UaStructuredType;
import org.eclipse.milo.opcua.stack.core.types.builtin.*;
import org.eclipse.milo.opcua.stack.core.types.enumerated.*;
import org.eclipse.milo.opcua.stack.core.types.structured.*;

public final class MiloClient {
    private static final String[] FIELDS = {
        "EventId", "EventType", "Message", "Severity", "Retain", "Comment", "ActiveState/Id", "AckedState/Id",
        "ConfirmedState/Id", "SuppressedOrShelved",
    };
    private static final NodeId LIMIT_ALARM = new NodeId(0, 9341);

    private final OpcUaClient client;
    private int passed;
    private int failed;

    private MiloClient(OpcUaClient client) {
        this.client = client;
    }

    private void check(String name, boolean ok, Object detail) {
        if (ok) passed++;
        else failed++;
        System.out.println((ok ? "ok     " : "FAILED ") + name + (ok ? "" : " " + detail));
    }

    private void status(String name, StatusCode status, long expected) {
        check(name, status.getValue() == expected, status);
    }

    private NodeId id(String uri, String name) {
        return new NodeId(client.getNamespaceTable().getIndex(uri), name);
    }

    private ExtensionObject encoded(UaStructuredType value) {
        return ExtensionObject.encode(client.getStaticEncodingContext(), value);
    }

    /** The events of one item, each an array of fields; the last is the ConditionId. */
    private final class Events {
        private final LinkedBlockingQueue<Variant[]> queue = new LinkedBlockingQueue<>();
        private int low;

        Events(OpcUaSubscription subscription, ContentFilterElement... where) {
            SimpleAttributeOperand[] select = new SimpleAttributeOperand[FIELDS.length + 1];
            for (int i = 0; i < FIELDS.length; i++) select[i] = field(FIELDS[i]);
            select[FIELDS.length] =
                new SimpleAttributeOperand(NodeIds.ConditionType, new QualifiedName[0], AttributeId.NodeId.uid(), null);
            OpcUaMonitoredItem item =
                OpcUaMonitoredItem.newEventItem(NodeIds.Server, new EventFilter(select, new ContentFilter(where)));
            item.setQueueSize(uint(1000));
            item.setEventValueListener((it, fields) -> {
                // An alarm that leaves the filter is reported once more, not retained (Part 9 §5.5.2).
                if (truth(fields, "Retain") && ((Number) value(fields, "Severity")).intValue() < 500) low++;
                queue.add(fields);
            });
            subscription.addMonitoredItem(item);
        }

        Variant[] next(Predicate<Variant[]> wanted) throws InterruptedException {
            for (;;) {
                Variant[] fields = queue.poll(15, TimeUnit.SECONDS);
                if (fields == null) throw new IllegalStateException("the expected event did not arrive");
                if (wanted.test(fields)) return fields;
            }
        }
    }

    private static SimpleAttributeOperand field(String path) {
        QualifiedName[] names =
            Arrays.stream(path.split("/")).map(name -> new QualifiedName(0, name)).toArray(QualifiedName[]::new);
        return new SimpleAttributeOperand(NodeIds.BaseEventType, names, AttributeId.Value.uid(), null);
    }

    private static Object value(Variant[] fields, String name) {
        return fields[Arrays.asList(FIELDS).indexOf(name)].getValue();
    }

    private static boolean truth(Variant[] fields, String name) {
        return Boolean.TRUE.equals(value(fields, name));
    }

    private ContentFilterElement element(FilterOperator operator, UaStructuredType... operands) {
        return new ContentFilterElement(
            operator, Arrays.stream(operands).map(this::encoded).toArray(ExtensionObject[]::new));
    }

    private StatusCode call(NodeId object, NodeId method, Object... inputs) throws Exception {
        Variant[] arguments = Arrays.stream(inputs).map(Variant::of).toArray(Variant[]::new);
        return client.call(List.of(new CallMethodRequest(object, method, arguments))).getResults()[0].getStatusCode();
    }

    private void set(NodeId node, double number) throws Exception {
        client.writeValues(List.of(node), List.of(DataValue.valueOnly(Variant.of(number))));
    }

    private void alarms() throws Exception {
        NodeId input = id("urn:taktwerk:interop", "alarms/input");
        NodeId condition = id("urn:taktwerk:interop", "alarms/input/LevelAlarm");
        Predicate<Variant[]> ours = fields -> condition.equals(fields[FIELDS.length].getValue());
        set(input, 0);
        OpcUaSubscription subscription = new OpcUaSubscription(client, 50.0);
        subscription.create();
        Events all = new Events(subscription);
        Events severe = new Events(
            subscription,
            element(FilterOperator.And, new ElementOperand(uint(1)), new ElementOperand(uint(2))),
            element(FilterOperator.OfType, new LiteralOperand(Variant.of(LIMIT_ALARM))),
            element(
                FilterOperator.GreaterThanOrEqual, field("Severity"), new LiteralOperand(Variant.of(ushort(500)))));
        subscription.synchronizeMonitoredItems();
        set(input, 85);
        Variant[] raised = all.next(ours.and(it -> truth(it, "ActiveState/Id")));
        Object text = value(raised, "Message");
        check("an alarm is raised", text.toString().contains("High limit") && truth(raised, "Retain"), text);
        Variant[] same = severe.next(ours);
        check("a where clause passes it", value(same, "EventId").equals(value(raised, "EventId")), "another event");
        LocalizedText seen = LocalizedText.english("seen");
        NodeId acknowledge = NodeIds.AcknowledgeableConditionType_Acknowledge;
        status("a comment is added", call(condition, NodeIds.ConditionType_AddComment, value(raised, "EventId"), seen), 0);
        status("it is acknowledged", call(condition, acknowledge, value(raised, "EventId"), seen), 0);
        Variant[] acked = all.next(ours.and(it -> truth(it, "AckedState/Id")));
        check("with the comment", "seen".equals(((LocalizedText) value(acked, "Comment")).text()), value(acked, "Comment"));
        status(
            "only once",
            call(condition, acknowledge, value(acked, "EventId"), seen),
            StatusCodes.Bad_ConditionBranchAlreadyAcked);
        status("it is shelved", call(condition, NodeIds.ShelvedStateMachineType_TimedShelve, 60000.0), 0);
        all.next(ours.and(it -> truth(it, "SuppressedOrShelved")));
        status("it is unshelved", call(condition, NodeIds.ShelvedStateMachineType_Unshelve), 0);
        all.next(ours.and(it -> !truth(it, "SuppressedOrShelved")));
        status(
            "a refresh",
            call(NodeIds.ConditionType, NodeIds.ConditionType_ConditionRefresh, subscription.getSubscriptionId().get()),
            0);
        all.next(it -> NodeIds.RefreshStartEventType.equals(value(it, "EventType")));
        int[] told = {0};
        all.next(it -> {
            if (ours.test(it)) told[0]++;
            return NodeIds.RefreshEndEventType.equals(value(it, "EventType"));
        });
        check("has the alarm once", told[0] == 1, told[0]);
        set(input, 0);
        Variant[] normal = all.next(ours.and(it -> !truth(it, "ActiveState/Id")));
        NodeId confirm = NodeIds.AcknowledgeableConditionType_Confirm;
        status("it is confirmed", call(condition, confirm, value(normal, "EventId"), seen), 0);
        Variant[] done = all.next(ours.and(it -> truth(it, "ConfirmedState/Id")));
        check("and not retained any longer", !truth(done, "Retain"), "Retain");
        check("the where clause holds others back", severe.low == 0, severe.low);
        subscription.delete();
    }

    private HistoryReadResult read(NodeId node, HistoryReadDetails details, ByteString continuation) throws Exception {
        HistoryReadValueId what = new HistoryReadValueId(node, null, QualifiedName.NULL_VALUE, continuation);
        return client.historyRead(details, TimestampsToReturn.Both, false, List.of(what)).getResults()[0];
    }

    private DataValue[] values(HistoryReadResult result) {
        Object data = result.getHistoryData().decode(client.getStaticEncodingContext());
        DataValue[] found = ((HistoryData) data).getDataValues();
        return found == null ? new DataValue[0] : found;
    }

    private void history() throws Exception {
        NodeId node = id("urn:taktwerk:demo-plant", "Plant/Boiler/Level");
        DateTime end = new DateTime(Instant.now());
        DateTime start = new DateTime(Instant.now().minus(Duration.ofMinutes(30)));
        DataValue[] raw = values(read(node, new ReadRawModifiedDetails(false, start, end, uint(0), false), ByteString.NULL_VALUE));
        check("raw values", raw.length > 100, raw.length);
        ReadRawModifiedDetails seven = new ReadRawModifiedDetails(false, start, end, uint(7), false);
        HistoryReadResult first = read(node, seven, ByteString.NULL_VALUE);
        check("seven of them", values(first).length == 7, values(first).length);
        DataValue[] next = values(read(node, seven, first.getContinuationPoint()));
        check("and the next seven", next[0].sourceTime().equals(raw[7].sourceTime()), next[0]);
        NodeId[] average = {NodeIds.AggregateFunction_Average};
        AggregateConfiguration defaults = new AggregateConfiguration(true, false, ubyte(0), ubyte(0), false);
        HistoryReadResult mean = read(node, new ReadProcessedDetails(start, end, 0.0, average, defaults), ByteString.NULL_VALUE);
        double sum = Arrays.stream(raw).mapToDouble(it -> (Double) it.value().getValue()).sum();
        double found = (Double) values(mean)[0].value().getValue();
        check("Average", Math.abs(found - sum / raw.length) < 1e-9, found + " " + sum / raw.length);
        DateTime[] times = {raw[10].sourceTime(), raw[11].sourceTime()};
        DataValue[] exact = values(read(node, new ReadAtTimeDetails(times, false), ByteString.NULL_VALUE));
        check("at times", exact.length == 2 && exact[1].value().equals(raw[11].value()), Arrays.toString(exact));
        Thread.sleep(1500);
        SimpleAttributeOperand[] fields = {field("EventId"), field("Message")};
        EventFilter filter = new EventFilter(fields, new ContentFilter(new ContentFilterElement[0]));
        DateTime now = new DateTime(Instant.now());
        HistoryReadResult events = read(NodeIds.Server, new ReadEventDetails(uint(0), start, now, filter), ByteString.NULL_VALUE);
        Object stored = events.getHistoryData().decode(client.getStaticEncodingContext());
        int count = ((HistoryEvent) stored).getEvents().length;
        check("stored events", count >= 2, count);
    }

    private void nodes() throws Exception {
        NodeId line = new NodeId(1, "MLine");
        NodeId speed = new NodeId(1, "MLine.Speed");
        LocalizedText name = LocalizedText.english("name");
        ObjectAttributes object = new ObjectAttributes(uint(64), name, name, uint(0), uint(0), ubyte(0));
        VariableAttributes variable = new VariableAttributes(
            uint(64 | (1 << 21) | 16 | (1 << 19) | 1), name, name, uint(0), uint(0), Variant.of(1.5), NodeIds.Double, -1,
            null, ubyte(3), ubyte(3), 0.0, false);
        AddNodesItem[] items = {
            item(NodeIds.ObjectsFolder, NodeIds.Organizes, line, NodeClass.Object, object, NodeIds.BaseObjectType),
            item(line, NodeIds.HasComponent, speed, NodeClass.Variable, variable, NodeIds.BaseDataVariableType),
            item(NodeIds.ObjectsFolder, NodeIds.Organizes, line, NodeClass.Object, object, NodeIds.BaseObjectType),
        };
        AddNodesResult[] added = client.addNodes(List.of(items)).getResults();
        status("an object is added", added[0].getStatusCode(), 0);
        status("a variable below it", added[1].getStatusCode(), 0);
        status("an id is not assigned twice", added[2].getStatusCode(), StatusCodes.Bad_NodeIdExists);
        DataValue value = client.readValue(0, TimestampsToReturn.Both, speed);
        check("the variable has its value", Double.valueOf(1.5).equals(value.value().getValue()), value);
        StatusCode gone = client.deleteNodes(List.of(new DeleteNodesItem(line, true))).getResults()[0];
        status("a node is deleted", gone, 0);
        StatusCode left = client.readValue(0, TimestampsToReturn.Both, speed).statusCode();
        status("with its components", left, StatusCodes.Bad_NodeIdUnknown);
    }

    private AddNodesItem item(
            NodeId parent, NodeId reference, NodeId id, NodeClass kind, UaStructuredType attributes, NodeId type) {
        return new AddNodesItem(
            parent.expanded(), reference, id.expanded(), new QualifiedName(1, id.getIdentifier().toString()), kind,
            encoded(attributes), type.expanded());
    }

    private void change() throws Exception {
        NodeId node = id("urn:taktwerk:demo-plant", "Plant/TemperatureSetpoint");
        DateTime time = new DateTime(Instant.parse("2021-01-01T00:00:00Z"));
        DateTime later = new DateTime(Instant.parse("2021-01-01T00:01:00Z"));
        DataValue value = new DataValue(Variant.of(1.5), StatusCode.GOOD, time, time);
        status("a value is inserted", put(node, PerformUpdateType.Insert, value), StatusCodes.Good_EntryInserted);
        status("only once", put(node, PerformUpdateType.Insert, value), StatusCodes.Bad_EntryExists);
        status("it is replaced", put(node, PerformUpdateType.Replace, value), StatusCodes.Good_EntryReplaced);
        ReadRawModifiedDetails range = new ReadRawModifiedDetails(false, time, later, uint(0), false);
        check("and read", values(read(node, range, ByteString.NULL_VALUE)).length == 1, "not one value");
        HistoryUpdateDetails delete = new DeleteRawModifiedDetails(node, false, time, later);
        status("it is deleted", client.historyUpdate(List.of(delete)).getResults()[0].getStatusCode(), 0);
        check("and gone", values(read(node, range, ByteString.NULL_VALUE)).length == 0, "still there");
    }

    private StatusCode put(NodeId node, PerformUpdateType how, DataValue value) throws Exception {
        HistoryUpdateDetails details = new UpdateDataDetails(node, how, new DataValue[] {value});
        HistoryUpdateResult result = client.historyUpdate(List.of(details)).getResults()[0];
        return result.getStatusCode().isGood() ? result.getOperationResults()[0] : result.getStatusCode();
    }

    private interface Step {
        void run() throws Exception;
    }

    private void step(String name, Step step) {
        try {
            step.run();
        } catch (Exception error) {
            check(name, false, error + " " + Arrays.toString(error.getStackTrace()));
        }
    }

    public static void main(String[] arguments) throws Exception {
        OpcUaClient client = OpcUaClient.create(arguments[1]);
        client.connect();
        MiloClient steps = new MiloClient(client);
        if (arguments[0].equals("operate")) {
            steps.step("alarms", steps::alarms);
            steps.step("history", steps::history);
            steps.step("nodes", steps::nodes);
        } else {
            steps.step("change", steps::change);
        }
        client.disconnect();
        System.out.println("count: " + steps.passed + " passed, " + steps.failed + " failed");
        System.exit(steps.failed == 0 ? 0 : 1);
    }
}
