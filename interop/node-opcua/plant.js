// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A node-opcua server with events, alarms and history, for `taktwerk events`, `alarms` and `history`.
//   node plant.js
//
// Prints READY URL. Object Plant (ns=1;s=Plant), which raises an event every 200 ms with a rising number; writable
// variables ns=1;s=Level and ns=1;s=Pressure with an exclusive and a non-exclusive limit alarm (80, 95, 20, 5); variable
// ns=1;s=Ramp with the history 0, 1, 2 … 199, one second apart.
"use strict";

const fs = require("fs");
const net = require("net");
const os = require("os");
const path = require("path");
const { OPCUAServer } = require("node-opcua-server");
const { DataType } = require("node-opcua-variant");
const { StatusCodes } = require("node-opcua-status-code");
const { MessageSecurityMode, SecurityPolicy } = require("node-opcua-secure-channel");
const { OPCUACertificateManager } = require("node-opcua-certificate-manager");

const VALUES = 200;

function freePort() {
    return new Promise((resolve, reject) => {
        const server = net.createServer().once("error", reject);
        server.listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}

async function main() {
    const port = await freePort();
    const pki = fs.mkdtempSync(path.join(os.tmpdir(), "node-opcua-plant-"));
    for (const signal of ["SIGTERM", "SIGINT"]) {
        process.on(signal, () => {
            fs.rmSync(pki, { recursive: true, force: true });
            process.exit(0);
        });
    }
    const certificates = new OPCUACertificateManager({ rootFolder: pki, automaticallyAcceptUnknownCertificate: true });
    await certificates.initialize();
    const server = new OPCUAServer({
        port,
        host: "127.0.0.1",
        hostname: "127.0.0.1",
        serverCertificateManager: certificates,
        userCertificateManager: certificates,
        securityModes: [MessageSecurityMode.None],
        securityPolicies: [SecurityPolicy.None],
        allowAnonymous: true,
        serverInfo: { applicationUri: "urn:taktwerk:peer:node-opcua:plant" },
    });
    await server.initialize();
    const addressSpace = server.engine.addressSpace;
    const space = addressSpace.getOwnNamespace();
    addressSpace.installAlarmsAndConditionsService();
    const plant = space.addObject({
        browseName: "Plant",
        nodeId: "s=Plant",
        organizedBy: addressSpace.rootFolder.objects,
        notifierOf: addressSpace.rootFolder.objects.server,
        eventNotifier: 1,
    });
    const input = (name, instantiate) => {
        const variable = space.addVariable({
            browseName: name,
            nodeId: `s=${name}`,
            componentOf: plant,
            eventSourceOf: plant,
            dataType: DataType.Double,
            minimumSamplingInterval: 0,
            accessLevel: "CurrentRead | CurrentWrite",
            userAccessLevel: "CurrentRead | CurrentWrite",
        });
        variable.setValueFromSource({ dataType: DataType.Double, value: 50 });
        const alarm = instantiate({
            browseName: `${name}Alarm`,
            nodeId: `s=${name}Alarm`,
            conditionName: `${name}Alarm`,
            conditionSource: variable,
            componentOf: plant,
            inputNode: variable,
            optionals: ["ConfirmedState", "Confirm", "ShelvingState"],
            lowLowLimit: 5,
            lowLimit: 20,
            highLimit: 80,
            highHighLimit: 95,
        });
        alarm.setEnabledState(true);
        // The library leaves it without a state, which it takes for shelved.
        alarm.shelvingState.setState("Unshelved");
    };
    input("Level", (options) => space.instantiateExclusiveLimitAlarm("ExclusiveLimitAlarmType", options));
    input("Pressure", (options) => space.instantiateNonExclusiveLimitAlarm("NonExclusiveLimitAlarmType", options));

    const ramp = space.addVariable({ browseName: "Ramp", nodeId: "s=Ramp", componentOf: plant, dataType: DataType.Double });
    addressSpace.installHistoricalDataNode(ramp, { maxOnlineValues: 1000 });
    const start = Date.now() - 600_000;
    for (let value = 0; value < VALUES; value++) {
        ramp.setValueFromSource({ dataType: DataType.Double, value }, StatusCodes.Good, new Date(start + value * 1000));
    }
    await server.start();
    let number = 0;
    setInterval(() => {
        number += 1;
        plant.raiseEvent("BaseEventType", {
            message: { dataType: DataType.LocalizedText, value: { text: `event ${number}` } },
            severity: { dataType: DataType.UInt16, value: number % 2 === 0 ? 300 : 700 },
        });
    }, 200);
    console.log(`READY opc.tcp://127.0.0.1:${port}`);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
