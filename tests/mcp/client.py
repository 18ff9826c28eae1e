"""The published Python client: lists and calls what it is told, and prints what it saw as JSON.

Usage: client.py MODE VERSION CALLS URL, or client.py MODE VERSION CALLS COMMAND ARGUMENT...
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main(mode: str, version: str, calls: str, first: str, *rest: str) -> None:
    server = StdioServerParameters(command=first, args=list(rest)) if rest else first
    async with Client(server, mode=mode) as client:
        assert client.protocol_version == version, client.protocol_version
        tools = plain(await client.list_tools())["tools"]
        answers = [plain(await client.call_tool(tool, given)) for tool, given in json.loads(calls)]
        resources = [resource["uri"] for resource in plain(await client.list_resources())["resources"]]
        read = [plain(await client.read_resource(uri))["contents"][0]["text"] for uri in resources]
    print(json.dumps({"tools": tools, "answers": answers, "resources": resources, "read": read}))


asyncio.run(main(*sys.argv[1:]))
