"""A Sparkplug B edge node with a device, made with pysparkplug: `python3 edge.py PORT`.

It prints READY when it is born, and each command that it gets.
"""

import datetime
import sys
import time

import pysparkplug as sparkplug

now = sparkplug.get_current_timestamp
types = sparkplug.DataType


def metric(name, datatype, value):
    return sparkplug.Metric(now(), name, datatype, value=value)


def on_command(_, message):
    for told in message.payload.metrics:
        print("COMMAND", message.topic, told.name, told.value, flush=True)


edge = sparkplug.EdgeNode("G", "E", [metric("Uptime", types.UINT64, 5)], cmd_callback=on_command)
when = datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc)
edge.register(
    sparkplug.Device(
        "D",
        [
            metric("Oven/T", types.DOUBLE, 20.5),
            metric("Set", types.INT32, -5),
            metric("Curve", types.INT16_ARRAY, (1, -2, 3)),
            metric("Name", types.STRING, "x"),
            metric("When", types.DATETIME, when),
        ],
        cmd_callback=on_command,
    )
)
edge.connect("127.0.0.1", port=int(sys.argv[1]))
time.sleep(1)
print("READY", flush=True)
edge.update_device("D", [metric("Oven/T", types.DOUBLE, 21.5)])
# Until it is killed, which the broker reports as its death.
sys.stdin.read()
