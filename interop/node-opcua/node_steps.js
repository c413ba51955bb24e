// SPDX-License-Identifier: MIT OR Apache-2.0
//
// node-opcua adds and deletes nodes and references of a Taktwerk server. Its client has no functions for this.
"use strict";

const { AttributeIds, BrowseDirection, NodeClass } = require("node-opcua-client");
const { ExpandedNodeId, coerceExpandedNodeId, coerceNodeId } = require("node-opcua-nodeid");
const {
    AddNodesRequest, AddReferencesRequest, DeleteNodesRequest, DeleteReferencesRequest, ObjectAttributes,
    VariableAttributes,
} = require("node-opcua-types");
const { DataType } = require("node-opcua-variant");
const { send } = require("./checks.js");

const COMPONENT = "i=47";
const ORGANIZES = "i=35";

async function nodes(session, checks) {
    const add = async (items) => (await send(session, new AddNodesRequest({ nodesToAdd: items }))).results;
    const object = (id, name, parent = "i=85", type = "i=58") => ({
        parentNodeId: coerceExpandedNodeId(parent),
        referenceTypeId: ORGANIZES,
        requestedNewNodeId: id ? coerceExpandedNodeId(id) : new ExpandedNodeId(),
        browseName: { namespaceIndex: 1, name },
        nodeClass: NodeClass.Object,
        nodeAttributes: new ObjectAttributes({ specifiedAttributes: 64, displayName: { text: name } }),
        typeDefinition: coerceExpandedNodeId(type),
    });
    const variable = (id, name, parent, value) => ({
        ...object(id, name, parent, "i=63"),
        referenceTypeId: COMPONENT,
        nodeClass: NodeClass.Variable,
        nodeAttributes: new VariableAttributes({
            // DisplayName, Value, DataType, ValueRank, AccessLevel
            specifiedAttributes: 64 | (1 << 21) | 16 | (1 << 19) | 1,
            displayName: { text: name },
            value: { dataType: DataType.Double, value },
            dataType: "i=11",
            valueRank: -1,
            accessLevel: 3,
        }),
    });
    const [line, speed, twice, orphan] = await add([
        object("ns=1;s=NLine", "NLine"),
        variable("ns=1;s=NLine.Speed", "Speed", "ns=1;s=NLine", 1.5),
        object("ns=1;s=NLine", "Other"),
        object("ns=1;s=NOrphan", "Orphan", "ns=1;s=Nothing"),
    ]);
    checks.status("an object is added", line.statusCode, "Good");
    checks.status("a variable below it, in the same request", speed.statusCode, "Good");
    checks.status("an id is not assigned twice", twice.statusCode, "BadNodeIdExists");
    checks.status("a parent has to exist", orphan.statusCode, "BadParentNodeIdInvalid");
    const value = await session.read({ nodeId: "ns=1;s=NLine.Speed", attributeId: AttributeIds.Value });
    checks.check("the variable has its value", value.value.value === 1.5, value);
    const [chosen] = await add([object(null, "Chosen")]);
    checks.check("the server chooses an id", chosen.statusCode.isGood() && !chosen.addedNodeId.isEmpty(), chosen);

    const targets = async (node) => {
        const found = await session.browse({ nodeId: node, referenceTypeId: "i=33", includeSubtypes: true, browseDirection: BrowseDirection.Forward, resultMask: 63 });
        return found.references.map((it) => it.nodeId.toString());
    };
    const reference = {
        sourceNodeId: chosen.addedNodeId,
        referenceTypeId: coerceNodeId(ORGANIZES),
        isForward: true,
        targetNodeId: coerceExpandedNodeId("ns=1;s=NLine"),
    };
    const added = await send(session, new AddReferencesRequest({ referencesToAdd: [{ ...reference, targetNodeClass: NodeClass.Object }] }));
    checks.status("a reference is added", added.results[0], "Good");
    checks.check("and browsed", (await targets(chosen.addedNodeId)).includes("ns=1;s=NLine"));
    const removed = await send(session, new DeleteReferencesRequest({ referencesToDelete: [{ ...reference, deleteBidirectional: true }] }));
    checks.status("a reference is deleted", removed.results[0], "Good");
    checks.check("and gone", (await targets(chosen.addedNodeId)).length === 0);
    const gone = await send(session, new DeleteNodesRequest({
        nodesToDelete: [
            { nodeId: "ns=1;s=NLine", deleteTargetReferences: true },
            { nodeId: chosen.addedNodeId, deleteTargetReferences: true },
            { nodeId: "ns=1;s=Nothing", deleteTargetReferences: true },
            { nodeId: "i=2253", deleteTargetReferences: true },
        ],
    }));
    checks.check("nodes are deleted", gone.results.slice(0, 2).every((it) => it.isGood()), gone.results.join(" "));
    checks.status("an unknown one is not", gone.results[2], "BadNodeIdUnknown");
    checks.check("nor the server's", gone.results[3].isNotGood(), gone.results[3]);
    const after = await session.read([
        { nodeId: "ns=1;s=NLine", attributeId: AttributeIds.BrowseName },
        { nodeId: "ns=1;s=NLine.Speed", attributeId: AttributeIds.Value },
    ]);
    checks.status("a deleted node does not exist", after[0].statusCode, "BadNodeIdUnknown");
    checks.status("nor do its components", after[1].statusCode, "BadNodeIdUnknown");
}

module.exports = { nodes };
