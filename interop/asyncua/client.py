#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""An asyncua client for interop and comparison.

One JSON document on stdout, logs on stderr, exit code 0 when everything held, 1 when not.
The names of the checks are those of o6-client where both make the same check.
"""

import argparse
import asyncio
import importlib.metadata
import json
import logging
import sys
import time

from asyncua import Client, ua
from alarm_steps import AlarmSteps
from asyncua.crypto import security_policies
from subscription_steps import SubscriptionSteps
from value_steps import ValueSteps
from view_steps import ViewSteps

FIRST_SIGNAL = 100000


class Smoke(ViewSteps, ValueSteps, SubscriptionSteps):
    """All steps."""


async def secure(client, args, policy, mode):
    policy = getattr(security_policies, f"SecurityPolicy{policy.replace('_', '')}")
    mode = ua.MessageSecurityMode.Sign if mode == "sign" else ua.MessageSecurityMode.SignAndEncrypt
    await client.set_security(policy, args.cert, args.key, mode=mode)


async def connected(args):
    client = Client(args.url, timeout=args.timeout)
    client.application_uri = "urn:taktwerk:peer:asyncua:client"
    if args.lifetime:
        client.secure_channel_timeout = args.lifetime
    if args.policy:
        await secure(client, args, args.policy, args.mode)
    if args.user:
        client.set_user(args.user)
        client.set_password(args.password)
    await client.connect()
    return client


def report(args, ok, **more):
    library = f"asyncua {importlib.metadata.version('asyncua')}"
    head = {"tool": "asyncua-client", "library": library, "command": args.command, "url": args.url}
    print(json.dumps(head | {"ok": bool(ok)} | more, ensure_ascii=False))
    return 0 if ok else 1


async def smoke(args):
    try:
        client = await connected(args)
    except Exception as e:  # noqa: BLE001
        failed = [{"name": "connect", "ok": False, "detail": f"{type(e).__name__}: {e}"}]
        return report(args, False, passed=0, failed=1, checks=failed)
    s = Smoke(client, args.url)
    s.check("connect", True)
    for step in (s.discovery, s.server_object, s.browse_all, s.browse_steps, s.read_values,
                 s.read_declarations, s.read_timestamps, s.write_values, s.index_ranges,
                 s.errors, s.calls, s.paths, s.registration, s.subscriptions):  # fmt: skip
        await s.run(step)
    try:
        await client.disconnect()
        s.check("close-session", True)
    except Exception as e:  # noqa: BLE001
        s.check("close-session", False, e)
    failed = sum(not c["ok"] for c in s.checks)
    return report(args, failed == 0, passed=len(s.checks) - failed, failed=failed, checks=s.checks)


async def alarms(args):
    """Events, alarms and conditions, for servers with the test alarm."""
    client = await connected(args)
    s = AlarmSteps(client, args.url)
    await s.run(s.alarms)
    await client.disconnect()
    failed = sum(not c["ok"] for c in s.checks)
    return report(args, failed == 0, passed=len(s.checks) - failed, failed=failed, checks=s.checks)


async def cell(args, policy, mode, user):
    client = Client(args.url, timeout=args.timeout)
    client.application_uri = "urn:taktwerk:peer:asyncua:client"
    await secure(client, args, policy, mode)
    if user == "user":
        client.set_user(args.user)
        client.set_password(args.password)
    elif user == "x509":
        await client.load_client_certificate(args.user_cert)
        await client.load_private_key(args.user_key)
    await client.connect()
    try:
        await client.get_node(ua.NodeId(2258)).read_value()
        # About 20 kB each way: a message of several chunks, if the server accepts this many nodes at once.
        many = [ua.NodeId(2258)] * 1000
        values = await client.read_values([client.get_node(node) for node in many])
        if len(values) != len(many) or any(value is None for value in values):
            raise ValueError(f"{len(values)} of {len(many)} values")
    finally:
        await client.disconnect()


async def matrix(args):
    """Every policy, mode and kind of user: one line per cell, `ok|failed POLICY MODE USER REASON`."""
    failed = 0
    for policy in args.policy.split(","):
        for mode in ("sign", "encrypt"):
            for user in ("anonymous", "user", "x509"):
                reason = ""
                try:
                    await asyncio.wait_for(cell(args, policy, mode, user), args.timeout)
                except Exception as e:  # noqa: BLE001
                    reason = " ".join(f"{type(e).__name__} {e}".split())
                    failed += 1
                print("failed" if reason else "ok", policy, mode, user, reason, flush=True)
    return 1 if failed else 0


async def renew(args):
    """Reads without a pause while the library renews the channel's token at 75 % of its lifetime."""
    client = await connected(args)
    renewals, open_channel = 0, client.open_secure_channel

    async def counted(renew=False):
        nonlocal renewals
        await open_channel(renew)
        renewals += renew

    client.open_secure_channel = counted
    node, reads, begin = client.get_node(ua.NodeId(2258)), 0, time.monotonic()
    last = None
    try:
        while time.monotonic() - begin < args.seconds:
            value = await node.read_value()
            if last is not None and value < last:
                return report(args, False, error="the clock went backwards: an outdated response")
            last, reads = value, reads + 1
    except Exception as e:  # noqa: BLE001
        return report(args, False, error=f"{type(e).__name__}: {e}", reads=reads, renewals=renewals)
    seconds = time.monotonic() - begin
    await client.disconnect()
    return report(
        args, True, reads=reads, renewals=renewals, seconds=seconds, lifetime_ms=args.lifetime
    )


class Counter:
    def __init__(self):
        self.count = {}
        self.on = False

    def datachange_notification(self, node, value, data):
        if self.on:
            self.count[node.nodeid.Identifier] += 1


async def subscribe(args):
    per = args.items // args.clients
    clients, counters = [], []
    for c in range(args.clients):
        client = await connected(args)
        clients.append(client)
        counter = Counter()
        counters.append(counter)
        sub = await client.create_subscription(args.interval, counter)
        for at in range(c * per, (c + 1) * per, 500):
            span = range(at, min(at + 500, (c + 1) * per))
            counter.count.update({FIRST_SIGNAL + i: 0 for i in span})
            nodes = [client.get_node(ua.NodeId(FIRST_SIGNAL + i, 1)) for i in span]
            await sub.subscribe_data_change(
                nodes, queuesize=1, sampling_interval=float(args.interval)
            )
    await asyncio.sleep(1)
    for counter in counters:
        counter.on = True
    begin, cpu = time.monotonic(), time.process_time()
    await asyncio.sleep(args.seconds)
    seconds, cpu = time.monotonic() - begin, time.process_time() - cpu
    counts = []
    for counter in counters:
        counter.on = False
        counts += counter.count.values()
    for client in clients:
        await client.disconnect()
    total, expected = sum(counts), seconds * 1000 / args.interval
    return report(
        args, counts and min(counts) > 0, items=len(counts), clients=args.clients,
        interval_ms=args.interval, seconds=seconds, notifications=total,
        per_second=total / seconds, expected_per_item=expected,
        mean_per_item=total / max(len(counts), 1), min_per_item=min(counts, default=0),
        max_per_item=max(counts, default=0),
        received_ratio=total / (expected * max(len(counts), 1)), client_cpu_s=cpu,
    )  # fmt: skip


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("command", choices=["smoke", "alarms", "subscribe", "matrix", "renew"])
    p.add_argument("url")
    p.add_argument("--items", type=int, default=100)
    p.add_argument("--clients", type=int, default=1)
    p.add_argument("--interval", type=float, default=100, metavar="MS")
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--timeout", type=float, default=20, help="seconds for each request")
    p.add_argument("--user")
    p.add_argument("--password", default="")
    p.add_argument("--policy", help="such as Basic256Sha256; matrix takes several, with commas")
    p.add_argument("--mode", choices=["sign", "encrypt"], default="encrypt")
    p.add_argument("--cert", metavar="FILE")
    p.add_argument("--key", metavar="FILE")
    p.add_argument("--user-cert", metavar="FILE")
    p.add_argument("--user-key", metavar="FILE")
    p.add_argument("--lifetime", type=int, default=0, metavar="MS", help="of security tokens")
    p.add_argument("--verbose", action="store_true")
    args = p.parse_args()
    level = logging.INFO if args.verbose else logging.CRITICAL
    logging.basicConfig(stream=sys.stderr, level=level)
    command = {
        "smoke": smoke, "alarms": alarms, "subscribe": subscribe, "matrix": matrix, "renew": renew,
    }  # fmt: skip
    sys.exit(asyncio.run(command[args.command](args)))


if __name__ == "__main__":
    main()
