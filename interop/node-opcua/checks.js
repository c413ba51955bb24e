// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Checks of a node-opcua client, and what its steps have in common.
"use strict";

const { AttributeIds, OPCUAClient, TimestampsToReturn, constructEventFilter } = require("node-opcua-client");
const { MessageSecurityMode, SecurityPolicy } = require("node-opcua-secure-channel");

/** How long an expected event may take. */
const PATIENCE_MS = 15000;

class Checks {
    passed = 0;
    failed = 0;

    check(name, ok, detail) {
        if (ok) this.passed += 1;
        else this.failed += 1;
        console.log(`${ok ? "ok    " : "FAILED"} ${name}${ok || detail === undefined ? "" : ` ${detail}`}`);
    }

    /** Whether a status has the expected name. */
    status(name, status, expected) {
        this.check(name, status.name === expected, `${status.name} instead of ${expected}`);
    }

    /** Runs a step. An exception is a failed check. */
    async step(name, work) {
        try {
            await work();
        } catch (error) {
            this.check(name, false, error.stack);
        }
    }

    end() {
        console.log(`count: ${this.passed} passed, ${this.failed} failed`);
        return this.failed === 0 ? 0 : 1;
    }
}

/** The events of one item, as objects with a member per field. */
class Events {
    #waiting = [];
    #wake = () => {};
    /** All events until now. */
    log = [];

    static async of(subscription, node, fields, where, queueSize = 1000) {
        const events = new Events();
        const item = await subscription.monitor(
            { nodeId: node, attributeId: AttributeIds.EventNotifier },
            { samplingInterval: 0, discardOldest: true, queueSize, filter: constructEventFilter(fields, where) },
            TimestampsToReturn.Both,
        );
        item.on("changed", (values) => {
            const event = {};
            fields.forEach((field, index) => (event[field] = values[index].value));
            events.log.push(event);
            events.#waiting.push(event);
            events.#wake();
        });
        return events;
    }

    /** The next event that is wanted; others are skipped. */
    async next(wanted = () => true) {
        const until = Date.now() + PATIENCE_MS;
        for (;;) {
            while (this.#waiting.length > 0) {
                const event = this.#waiting.shift();
                if (wanted(event)) return event;
            }
            const left = until - Date.now();
            if (left <= 0) throw new Error("the expected event did not arrive");
            await new Promise((resolve) => {
                const timer = setTimeout(resolve, left);
                this.#wake = () => {
                    clearTimeout(timer);
                    resolve();
                };
            });
        }
    }
}

async function connect(url) {
    const client = OPCUAClient.create({
        endpointMustExist: false,
        securityMode: MessageSecurityMode.None,
        securityPolicy: SecurityPolicy.None,
        connectionStrategy: { maxRetry: 0 },
    });
    await client.connect(url);
    return { client, session: await client.createSession() };
}

const subscribe = (session) =>
    session.createSubscription2({
        requestedPublishingInterval: 50,
        requestedLifetimeCount: 1000,
        requestedMaxKeepAliveCount: 10,
        maxNotificationsPerPublish: 0,
        publishingEnabled: true,
        priority: 0,
    });

/** Sends a request for which the session has no function. */
const send = (session, request) =>
    new Promise((resolve, reject) =>
        session.performMessageTransaction(request, (error, response) => (error ? reject(error) : resolve(response))),
    );

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

module.exports = { Checks, Events, connect, pause, send, subscribe };
