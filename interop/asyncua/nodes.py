#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""asyncua adds and deletes nodes of a Taktwerk server, finds aliases, and reads and writes files.

    nodes.py URL        the server of nodes.sh

Prints a line for each check and `count: N passed, M failed`, and ends with 1 if one failed.
"""

import asyncio
import sys

from asyncua import Client, ua
from asyncua.client.ua_file import UaFile


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, name, ok, detail=""):
        self.passed += bool(ok)
        self.failed += not ok
        print(f"{'ok    ' if ok else 'FAILED'} {name} {detail}")

    async def refuses(self, name, awaitable, *errors):
        try:
            result = await awaitable
        except errors:
            self(name, True)
        except ua.UaError as error:
            self(name, False, repr(error))
        else:
            self(name, False, repr(result))


async def nodes(client, checks):
    objects = client.nodes.objects
    line = await objects.add_object(ua.NodeId("Line", 1), ua.QualifiedName("Line", 1))
    checks("an object is added", line.nodeid == ua.NodeId("Line", 1), str(line.nodeid))
    speed = await line.add_variable(ua.NodeId("Line.Speed", 1), ua.QualifiedName("Speed", 1), 1.5)
    checks("a variable has its value", await speed.read_value() == 1.5)
    unit = await line.add_property(ua.NodeId("Line.Unit", 1), ua.QualifiedName("Unit", 1), "m/s")
    checks("a property has its value", await unit.read_value() == "m/s")
    folder = await objects.add_folder(ua.NodeId("Lines", 1), ua.QualifiedName("Lines", 1))
    child = await folder.add_object(
        ua.NodeId("Typed", 1), ua.QualifiedName("Typed", 1), objecttype=ua.ObjectIds.FolderType
    )
    kind = await child.read_type_definition()
    checks("an object has its type", kind == ua.NodeId(ua.ObjectIds.FolderType), str(kind))
    names = {(await node.read_browse_name()).Name for node in await line.get_children()}
    checks("they are browsed", names == {"Speed", "Unit"}, str(names))
    await checks.refuses(
        "an id is not assigned twice",
        objects.add_object(ua.NodeId("Line", 1), ua.QualifiedName("Other", 1)),
        ua.uaerrors.BadNodeIdExists,
    )
    await checks.refuses(
        "a parent has to exist",
        client.get_node(ua.NodeId("Nothing", 1)).add_object(ua.NodeId("X", 1), ua.QualifiedName("X", 1)),
        ua.uaerrors.BadParentNodeIdInvalid,
    )
    await folder.add_reference(line, ua.ObjectIds.Organizes, bidirectional=False)
    checks("a reference is added", line in await folder.get_children())
    await folder.delete_reference(line, ua.ObjectIds.Organizes, bidirectional=False)
    checks("a reference is deleted", line not in await folder.get_children())
    await client.delete_nodes([folder, line], recursive=True)
    await checks.refuses("a deleted node does not exist", line.read_browse_name(), ua.uaerrors.BadNodeIdUnknown)
    await checks.refuses("nor do its children", speed.read_value(), ua.uaerrors.BadNodeIdUnknown)


async def aliases(client, checks):
    tags = client.get_node(ua.ObjectIds.TagVariables)
    alias = await tags.add_object(
        ua.NodeId("Alias", 1), ua.QualifiedName("TIC101", 1), objecttype=ua.ObjectIds.AliasNameType
    )
    level = await client.nodes.objects.add_variable(ua.NodeId("Level", 1), ua.QualifiedName("Level", 1), 1.0)
    await alias.add_reference(level, ua.ObjectIds.AliasFor, bidirectional=False)
    find = client.get_node(ua.ObjectIds.TagVariables_FindAlias)
    found = await tags.call_method(find, "TIC%", ua.NodeId())
    checks(
        "an alias is found",
        len(found) == 1 and found[0].ReferencedNodes[0].Identifier == "Level",
        str(found),
    )
    checks("other names are not found", not await tags.call_method(find, "FIC%", ua.NodeId()))


async def files(client, checks):
    folder = await client.nodes.objects.get_child("1:Recipes")
    bread = await folder.get_child(ua.QualifiedName("bread.txt", 1))
    async with UaFile(bread, "r") as file:
        content = await file.read()
        checks("a file is read", content == b"flour", repr(content))
        checks("its size is known", await file.get_size() == 5)
    async with UaFile(bread, "w") as file:
        await file.write(b"water")
    async with UaFile(bread, "r") as file:
        content = await file.read()
    checks("a file is written", content == b"water", repr(content))
    create = await folder.get_child("0:CreateFile")
    node, _ = await folder.call_method(create, "cake.txt", False)
    async with UaFile(client.get_node(node), "w") as file:
        await file.write(b"x" * 100_000)
    async with UaFile(client.get_node(node), "r") as file:
        content = await file.read()
    checks("a file is created and filled", content == b"x" * 100_000, str(len(content)))
    await checks.refuses(
        "a path is refused as a name",
        folder.call_method(create, "../outside.txt", False),
        ua.uaerrors.BadBrowseNameInvalid,
    )
    delete = await folder.get_child("0:Delete")
    await folder.call_method(delete, node)
    await checks.refuses(
        "a deleted file does not exist", client.get_node(node).read_browse_name(), ua.uaerrors.BadNodeIdUnknown
    )


async def main(url):
    checks = Checks()
    async with Client(url) as client:
        await nodes(client, checks)
        await files(client, checks)
        await aliases(client, checks)
    print(f"count: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
