# SPDX-License-Identifier: MIT OR Apache-2.0
"""Steps through discovery and the View services, which browse the address space."""

import time

import testnodes as tn
from asyncua import Client, ua
from steps import Steps, status_name, status_of


class ViewSteps(Steps):
    async def discovery(self):
        found = await Client(self.url).connect_and_get_server_endpoints()
        names = [f"{e.SecurityPolicyUri.rsplit('#')[-1]}/{e.SecurityMode.value}" for e in found]
        self.check("get-endpoints", found, " ".join(names))
        servers = await Client(self.url).connect_and_find_servers()
        self.check("find-servers", servers, len(servers))

    async def server_object(self):
        status = (await self.read(ua.NodeId(ua.ObjectIds.Server_ServerStatus))).Value.Value
        ok = isinstance(status, ua.ServerStatusDataType) and status.State == ua.ServerState.Running
        self.check("server-status", ok, getattr(status, "State", status))
        uris = await self.client.get_namespace_array()
        found = tn.URI in uris
        self.ns = uris.index(tn.URI) if found else 0
        self.check("namespace-array", found, f"{tn.URI} has index {self.ns}")

    async def browse_all(self):
        seen, order = set(), [ua.NodeId(ua.ObjectIds.RootFolder)]
        seen.add(order[0])
        references = continued = 0
        begin, errors = time.monotonic(), []
        for node_id in order:
            results = await self.browse(node_id, 10)
            while results:
                (r,) = results
                if not r.StatusCode.is_good():
                    errors.append(status_name(r.StatusCode))
                references += len(r.References)
                for ref in r.References:
                    target = ref.NodeId
                    if getattr(target, "ServerIndex", 0):
                        continue
                    plain = ua.NodeId(target.Identifier, target.NamespaceIndex, target.NodeIdType)
                    if plain not in seen:
                        seen.add(plain)
                        order.append(plain)
                results = None
                if r.ContinuationPoint:
                    continued += 1
                    results = await self.browse_next(r.ContinuationPoint, False)
        ms = (time.monotonic() - begin) * 1e3
        self.check(
            "browse-all",
            not errors and len(order) > 100,
            f"{len(order)} nodes, {references} references, {continued} continuations, "
            f"{len(errors)} errors {errors[:3]}, {ms:.0f} ms",
        )
        await self.read_all_attributes(order[:20000])

    async def read_all_attributes(self, nodes):
        allowed = {
            getattr(ua.StatusCodes, n)
            for n in ("BadAttributeIdInvalid", "BadNotReadable", "BadUserAccessDenied",
                      "BadWaitingForInitialData", "BadNotSupported", "BadOutOfService",
                      "BadSecurityModeInsufficient")
        }  # fmt: skip
        good, errors, skipped, begin = 0, [], 0, time.monotonic()
        batches = [nodes[at : at + 20] for at in range(0, len(nodes), 20)]
        for batch in batches:
            params = ua.ReadParameters()
            params.TimestampsToReturn = ua.TimestampsToReturn.Neither
            for node_id in batch:
                for attribute in range(1, 28):
                    item = ua.ReadValueId()
                    item.NodeId = node_id
                    item.AttributeId = ua.AttributeIds(attribute)
                    params.NodesToRead.append(item)
            try:
                values = await self.session.read(params)
            except Exception as e:  # noqa: BLE001
                if len(batch) > 1:
                    batches += [[node_id] for node_id in batch]
                elif await self.undecodable_here(batch[0]):
                    skipped += 1
                else:
                    errors.append(f"{batch[0].to_string()}: {e}")
                continue
            for item, value in zip(params.NodesToRead, values):
                code = status_of(value).value
                if code >> 30 != 2:
                    good += 1
                elif code not in allowed:
                    errors.append(f"{item.NodeId.to_string()}: {status_name(code)}")
        ms = (time.monotonic() - begin) * 1e3
        self.check(
            "read-all-attributes",
            not errors and good > 4 * len(nodes),
            f"{len(nodes)} nodes, {good} attributes read, {len(errors)} errors {errors[:3]}, "
            f"{skipped} skipped, {ms:.0f} ms",
        )

    async def undecodable_here(self, node_id):
        """asyncua 2.1.0 takes the field Encoding of SessionSecurityDiagnosticsDataType for its own
        mask byte, so no server can make it decode that structure."""
        value = await self.read(node_id, attribute=ua.AttributeIds.DataType)
        return value.Value.Value == ua.NodeId(ua.ObjectIds.SessionSecurityDiagnosticsDataType)

    async def browse(self, node_id, most):
        d = ua.BrowseDescription()
        d.NodeId = node_id
        d.BrowseDirection = ua.BrowseDirection.Forward
        d.ReferenceTypeId = ua.NodeId(ua.ObjectIds.References)
        d.IncludeSubtypes = True
        d.NodeClassMask = ua.NodeClass(0)
        d.ResultMask = ua.BrowseResultMask.All
        params = ua.BrowseParameters()
        params.RequestedMaxReferencesPerNode = most
        params.NodesToBrowse = [d]
        return await self.session.browse(params)

    async def browse_next(self, point, release):
        params = ua.BrowseNextParameters()
        params.ReleaseContinuationPoints = release
        params.ContinuationPoints = [point]
        return await self.session.browse_next(params)

    async def browse_steps(self):
        (r,) = await self.browse(self.id("scalar"), 3)
        first, total = len(r.References), len(r.References)
        point = r.ContinuationPoint
        while r.ContinuationPoint:
            (r,) = await self.browse_next(r.ContinuationPoint, False)
            total += len(r.References)
        want = len(tn.TYPES) + 1
        self.check("browse-next", first == 3 and point and total == want, f"{total} of {want}")
        (r,) = await self.browse(self.id("scalar"), 3)
        await self.browse_next(r.ContinuationPoint, True)
        (again,) = await self.browse_next(r.ContinuationPoint, False)
        ok = again.StatusCode.value == ua.StatusCodes.BadContinuationPointInvalid
        self.check("browse-release", ok, status_name(again.StatusCode))

    async def paths(self):
        for name, last, want in (
            ("translate-browse-path", "Int32", "scalar/Int32"),
            ("translate-browse-path no match", "nothing here", None),
        ):
            path = ua.BrowsePath()
            path.StartingNode = ua.NodeId(ua.ObjectIds.ObjectsFolder)
            for step in ("interop", "scalar", last):
                e = ua.RelativePathElement()
                e.ReferenceTypeId = ua.NodeId(ua.ObjectIds.HierarchicalReferences)
                e.IsInverse = False
                e.IncludeSubtypes = True
                e.TargetName = ua.QualifiedName(step, self.ns)
                path.RelativePath.Elements.append(e)
            (r,) = await self.session.translate_browsepaths_to_nodeids([path])
            found = [t.TargetId for t in r.Targets]
            if want:
                ok = [(t.Identifier, t.NamespaceIndex) for t in found] == [(want, self.ns)]
            else:
                ok = r.StatusCode.value == ua.StatusCodes.BadNoMatch
            self.check(name, ok, f"{status_name(r.StatusCode)} {found}")

    async def registration(self):
        ids = await self.session.register_nodes([self.id("the.answer"), self.id("scalar/Int32")])
        value = (await self.read(ids[0])).Value.Value
        self.check("register-nodes", len(ids) == 2 and value == 43, f"{ids} {value}")
        await self.session.unregister_nodes(ids)
        self.check("unregister-nodes", True)
