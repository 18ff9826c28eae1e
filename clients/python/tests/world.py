"""The world of ../../testing, for the tests of this package."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
import unittest
import uuid
from pathlib import Path
from typing import Any

import httpx

from clresolve_guard import GuardTransport

CLIENTS = Path(__file__).parents[2]

# The messages and values that all four guards are tested with.
MESSAGES: dict[str, Any] = json.loads((CLIENTS / "testing" / "messages.json").read_text())

# The first development account of anvil and hardhat: everybody has its key.
PAYER_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"


class Purchase:
    """A purchase of its own: its URL, and what arrived."""

    def __init__(self, world: World, which: str) -> None:
        self._world = world
        self._id = str(uuid.uuid4())
        self.url = f"{world.agent}/agent/{which}?id={self._id}"

    def arrived(self) -> dict[str, Any]:
        """What reached the honest seller and the thief."""
        kept = [self._read(f"{seller}/~ledger") for seller in (self._world.agent, self._world.thief)]
        payments = [payment for one in kept for payment in one["payments"]]
        return {"requests": sum(one["requests"] for one in kept), "payments": payments}

    def paid(self) -> list[str]:
        """For whom the payments are that arrived."""
        return [payment["to"] for payment in self.arrived()["payments"]]

    def asked(self) -> list[dict[str, Any]]:
        """The questions about it that the daemon was asked."""
        questions: list[dict[str, Any]] = self._read(f"{self._world.daemon}/~asked")
        return questions

    def _read(self, url: str) -> Any:
        return self._world.http.get(url, params={"id": self._id}).json()


class World:
    """The stand-in daemon and the sellers."""

    def __init__(self) -> None:
        node = os.environ.get("NODE", "node")
        command = [node, str(CLIENTS / "testing" / "world.mjs")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.http = httpx.Client(trust_env=False, verify=False)
        told = json.loads(self._process.stdout.readline())
        self.agent: str = told["agent"]
        self.thief: str = told["thief"]
        self.daemon: str = told["daemon"]
        self.secure: str = told["secure"]
        self.socket: str = told["socket"]
        self.ca: str = told["ca"]
        self.jwks: dict[str, Any] = told["jwks"]
        self.issuer: str = told["issuer"]
        self.name: str = told["name"]
        self.verb: str = told["verb"]
        self.honest: str = told["honest"]
        self.stranger: str = told["stranger"]
        self.kept: dict[str, str] = told["kept"]

    @classmethod
    def of_module(cls) -> World:
        """A world for the tests of one module: `setUpModule` starts it, and it stops after the last test."""
        world = cls()
        unittest.addModuleCleanup(world.stop)
        return world

    def stop(self) -> None:
        self.http.close()
        self._process.communicate()

    def purchase(self, which: str) -> Purchase:
        return Purchase(self, which)

    def guard(self, inner: Any, fault: str = "", **more: Any) -> GuardTransport:
        """A guard; `fault` is one of the stand-in's, such as `signed.503`."""
        daemon = f"{self.daemon}/{fault}" if fault else self.daemon
        given = {"daemon": daemon, "agent": self.name, "verb": self.verb, "timeout": 2.0, **more}
        return GuardTransport(inner, **given)

    def payment(self, *, value: str = "10000", seconds: int = 60, to: str = "", **rest: Any) -> str:
        """A payment header for the terms of the cases, as far as the stand-in reads one. Nobody signed it."""
        valid_before = str(int(time.time()) + seconds)
        authorization = {"to": to or self.honest, "value": value, "validBefore": valid_before}
        payload = {"authorization": authorization, "signature": "0x"}
        text = json.dumps({"x402Version": 2, "payload": payload, **rest})
        return base64.b64encode(text.encode()).decode()
