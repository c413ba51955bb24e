# SPDX-License-Identifier: MIT OR Apache-2.0
"""A Modbus TCP device of pymodbus, with values that pymodbus has encoded.   device.py PORT

Prints READY when it listens. Two units: 1 has values of many types, 2 has one. What is not listed does not exist.
"""
import asyncio
import sys

from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice


def device(unit, holding):
    bits = [SimData(0, values=[True, False, True] + [False] * 13, datatype=DataType.BITS)]
    inputs = [SimData(0, values=[17, 18, 19], datatype=DataType.UINT16)]
    return SimDevice(id=unit, simdata=(bits, bits, holding, inputs))


async def main(port):
    first = [
        SimData(0, values=-215, datatype=DataType.INT16),
        SimData(1, values=60, datatype=DataType.UINT16),
        SimData(10, values=1.5, datatype=DataType.FLOAT32),
        SimData(12, values=-1234567, datatype=DataType.INT32),
        SimData(14, values=2.25, datatype=DataType.FLOAT64),
        SimData(18, values=2**63 + 1, datatype=DataType.UINT64),
        SimData(30, values="pymodbus", datatype=DataType.STRING),
        SimData(40, values=[1, 2, 3], datatype=DataType.UINT16),
    ]
    second = [SimData(0, values=7, datatype=DataType.UINT16)]
    server = ModbusTcpServer([device(1, first), device(2, second)], address=("127.0.0.1", port))
    await server.listen()
    print("READY", flush=True)
    await asyncio.Event().wait()


asyncio.run(main(int(sys.argv[1])))
