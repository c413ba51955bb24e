#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""asyncua manages users and roles of a Taktwerk server with the standard methods (Part 18).

    users.py URL CERTIFICATE KEY    the server of nodes.sh, on which `sara` with the password `secret-one` is SecurityAdmin

Prints a line for each check and `count: N passed, M failed`, and ends with 1 if one failed.
"""

import asyncio
import sys

from asyncua import Client, ua
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
from nodes import Checks


def session(arguments, user, password):
    url, certificate, key = arguments

    class Session:
        async def __aenter__(self):
            self.client = Client(url)
            self.client.application_uri = "urn:taktwerk:peer:asyncua:client"
            self.client.set_user(user)
            self.client.set_password(password)
            mode = ua.MessageSecurityMode.SignAndEncrypt
            await self.client.set_security(SecurityPolicyBasic256Sha256, certificate, key, mode=mode)
            await self.client.connect()
            return self.client

        async def __aexit__(self, *_):
            await self.client.disconnect()

    return Session()


async def log_on(arguments, user, password):
    """Whether the user may log on, and whether the user may read the identities of a role."""
    async with session(arguments, user, password) as client:
        identities = client.get_node(ua.ObjectIds.WellKnownRole_Observer_Identities)
        try:
            await identities.read_value()
        except ua.UaStatusCodeError:
            return False
        return True


async def main(*arguments):
    checks = Checks()
    async with session(arguments, "sara", "secret-one") as client:
        management = client.get_node(ua.ObjectIds.UserManagement)
        call = lambda method, *inputs: management.call_method(ua.NodeId(method), *inputs)  # noqa: E731
        refused = (ua.uaerrors.BadUserAccessDenied, ua.uaerrors.BadIdentityTokenRejected)
        await checks.refuses("an unknown user is refused", log_on(arguments, "nina", "first-secret"), *refused)
        mask = ua.Variant(0, ua.VariantType.UInt32)
        await call(ua.ObjectIds.UserManagement_AddUser, "nina", "first-secret", mask, "a new one")
        checks("a user is added and logs on", await log_on(arguments, "nina", "first-secret") is False)
        role = client.get_node(ua.ObjectIds.WellKnownRole_SecurityAdmin)
        rule = ua.IdentityMappingRuleType(CriteriaType=ua.IdentityCriteriaType.UserName, Criteria="nina")
        identities = await role.get_child("0:Identities")
        names = lambda rules: [rule.Criteria for rule in rules]  # noqa: E731
        await role.call_method(await role.get_child("0:AddIdentity"), rule)
        granted = names(await identities.read_value())
        checks("AddIdentity grants a role", "nina" in granted and "sara" in granted, str(granted))
        checks("the role is effective at once", await log_on(arguments, "nina", "first-secret") is True)
        await role.call_method(await role.get_child("0:RemoveIdentity"), rule)
        left = names(await identities.read_value())
        checks("RemoveIdentity takes it away", "nina" not in left and "sara" in left, str(left))
        checks("and the role is not effective any more", await log_on(arguments, "nina", "first-secret") is False)
        await checks.refuses(
            "the last SecurityAdmin cannot be removed",
            role.call_method(
                await role.get_child("0:RemoveIdentity"),
                ua.IdentityMappingRuleType(CriteriaType=ua.IdentityCriteriaType.UserName, Criteria="sara"),
            ),
            ua.uaerrors.BadRequestNotAllowed,
        )
        await call(ua.ObjectIds.UserManagement_RemoveUser, "nina")
        await checks.refuses("a removed user is refused", log_on(arguments, "nina", "first-secret"), *refused)
    print(f"count: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:4])))
