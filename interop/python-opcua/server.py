#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A python-opcua server with N changing variables."""

import argparse
import logging
import os
import signal
import socket
import sys
import threading
import time
from datetime import datetime

from opcua import Server, ua

FIRST_SIGNAL = 100000
SIGNAL_FOLDER = 99999
# The interop test node that clients write and monitor.
INTEROP = "urn:taktwerk:interop"
PAYLOAD = "scalar/ByteString"


def free_port(address):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


def watch_stdin(stop):
    while os.read(0, 256):
        pass
    stop.set()


def update(variables, period, stop):
    start = time.monotonic()
    n = 0
    while not stop.wait(max(0.0, start + (n + 1) * period - time.monotonic())):
        n += 1
        now = datetime.utcnow()
        for i, variable in enumerate(variables):
            value = ua.DataValue(ua.Variant(float(n + i), ua.VariantType.Double))
            value.SourceTimestamp = now
            variable.set_value(value)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--port", type=int, default=4840, help="0 takes a free one")
    p.add_argument("--bind", default="127.0.0.1")
    p.add_argument("--variables", type=int, default=0)
    p.add_argument("--update", type=float, default=0, metavar="MS", help="0 = never")
    p.add_argument("--exit-with-stdin", action="store_true")
    args = p.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.CRITICAL)

    server = Server()
    port = args.port or free_port(args.bind)
    server.set_endpoint(f"opc.tcp://{args.bind}:{port}")
    server.set_application_uri("urn:taktwerk:peer:python-opcua:server")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    folder = server.get_objects_node().add_folder(
        ua.NodeId(SIGNAL_FOLDER, 1), ua.QualifiedName("signals", 1)
    )
    variables = []
    for i in range(args.variables):
        variable = folder.add_variable(
            ua.NodeId(FIRST_SIGNAL + i, 1), ua.QualifiedName(f"signal{i}", 1), float(i)
        )
        variable.set_writable()
        variables.append(variable)
    interop = server.register_namespace(INTEROP)
    payload = folder.add_variable(
        ua.NodeId(PAYLOAD, interop), ua.QualifiedName("ByteString", interop), b"", ua.VariantType.ByteString
    )
    payload.set_writable()

    stop = threading.Event()
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda *_: stop.set())
    server.start()
    if args.update > 0 and variables:
        threading.Thread(target=update, args=(variables, args.update / 1000, stop), daemon=True).start()
    if args.exit_with_stdin:
        threading.Thread(target=watch_stdin, args=(stop,), daemon=True).start()
    print(f"READY opc.tcp://{args.bind}:{port}", flush=True)
    stop.wait()
    # The library's shutdown waits for its clients; nothing is left to clean up.
    os._exit(0)


if __name__ == "__main__":
    main()
