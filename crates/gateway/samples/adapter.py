#!/usr/bin/env python3
"""A gateway adapter: reads the load of this machine. See docs/gateway-programs.md."""
import json
import os
import sys
import threading
import time

tags = {}
offset = 0.0


def send(message):
    print(json.dumps(message), flush=True)


def listen():
    """Takes what the gateway says; ends with it."""
    global offset
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "start":
            tags.update({tag["name"]: tag["id"] for tag in message["tags"]})
        elif message["type"] == "write":
            offset = float(message["value"])
            send({"id": message["id"], "value": offset})
    os._exit(0)


threading.Thread(target=listen, daemon=True).start()
print("started", file=sys.stderr)
while True:
    time.sleep(0.1)
    readings = []
    if "Load" in tags:
        readings.append({"id": tags["Load"], "value": os.getloadavg()[0] + offset, "time": time.time()})
    if readings:
        send(readings)
