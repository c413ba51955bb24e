"""A Sparkplug B host application, made with pysparkplug: `python3 host.py PORT GROUP`.

It prints READY when it listens, and a line for each message, and for each metric in it: its name, its value, and `historical`
if it is. A line on standard input, `NODE`, asks the node for a rebirth.
"""

import sys
import time

import pysparkplug as sparkplug


def on_message(_, message):
    topic = message.topic
    print(topic.message_type.value, topic.device_id or "-", flush=True)
    # A death message has no metrics in this library.
    for metric in getattr(message.payload, "metrics", ()):
        mark = " historical" if metric.is_historical else ""
        value = "null" if metric.is_null else metric.value
        print(f"  {metric.name or metric.alias} = {value}{mark}", flush=True)


group = sys.argv[2]
host = sparkplug.Client("host")
host.connect("127.0.0.1", port=int(sys.argv[1]))
kinds = sparkplug.MessageType
for kind, device in [
    (kinds.NBIRTH, None),
    (kinds.NDATA, None),
    (kinds.NDEATH, None),
    (kinds.DBIRTH, "+"),
    (kinds.DDATA, "+"),
]:
    topic = sparkplug.Topic(message_type=kind, group_id=group, edge_node_id="+", device_id=device)
    host.subscribe(topic, sparkplug.QoS.AT_LEAST_ONCE, on_message)
time.sleep(1)
print("READY", flush=True)
now = sparkplug.get_current_timestamp
for line in sys.stdin:
    topic = sparkplug.Topic(message_type=kinds.NCMD, group_id=group, edge_node_id=line.strip())
    rebirth = sparkplug.Metric(now(), "Node Control/Rebirth", sparkplug.DataType.BOOLEAN, value=True)
    payload = sparkplug.NCmd(timestamp=now(), metrics=(rebirth,))
    message = sparkplug.Message(topic=topic, payload=payload, qos=sparkplug.QoS.AT_MOST_ONCE, retain=False)
    host.publish(message, include_dtypes=True)
