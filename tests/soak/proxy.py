"""A bad line: a proxy that delays bytes, limits their rate, stalls as TCP does on loss, and breaks connections."""

import asyncio
import contextlib
import random
import threading
import time

DELAY, RATE, LOSS, STALL = 0.05, 10e6 / 8, 0.05, 0.25  # seconds, bytes per second, share of chunks, seconds
BREAK = 1 / 60  # connections broken per second
_CHUNK = 16_384


class Proxy:
    """Lines between sites, in a thread of its own.

    Args:
        lines: For each pair (dialler, dialled), the port to listen at and the one to forward to.
        seed: Of what goes wrong.
    """

    kind = "loopback, through a proxy"

    def __init__(self, lines, seed=0):
        self._lines, self._random = lines, random.Random(seed)
        self._cut = set()
        self._writers = {}
        self.broken = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(10)

    def command(self, name, words):
        """The words that run a command at a site."""
        return words

    def harm(self):
        return f"{self.broken} connections broken"

    def cut(self, pairs):
        """Break some lines, and keep them broken until the next call."""
        self._loop.call_soon_threadsafe(self._set_cut, set(pairs))

    def close(self):
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(self._loop)])
        self._loop.call_soon_threadsafe(self._loop.call_later, 0.2, self._loop.stop)
        self._thread.join(10)

    def _set_cut(self, pairs):
        self._cut = pairs
        for pair in pairs:
            self._end(pair)

    def _end(self, pair):
        for writer in self._writers.pop(pair, []):
            writer.transport.abort()

    def _run(self):
        asyncio.set_event_loop(self._loop)
        for pair, (port, target) in self._lines.items():
            serve = asyncio.start_server(lambda r, w, p=pair, t=target: self._serve(p, t, r, w), "127.0.0.1", port)
            self._loop.run_until_complete(serve)
        self._loop.create_task(self._breaking())
        self._ready.set()
        self._loop.run_forever()

    async def _breaking(self):
        while True:
            await asyncio.sleep(1)
            for pair in list(self._writers):
                if self._random.random() < BREAK:
                    self.broken += 1
                    self._end(pair)

    async def _serve(self, pair, target, reader, writer):
        if pair in self._cut:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            writer.transport.abort()
            return
        self._writers.setdefault(pair, []).extend([writer, back])
        await asyncio.gather(self._carry(reader, back), self._carry(there, writer))

    async def _carry(self, reader, writer):
        """Forward one way; chunks leave in order, each a delay after it came."""
        queue = asyncio.Queue(64)

        async def leave():
            while (item := await queue.get()) is not None:
                due, chunk = item
                await asyncio.sleep(max(0, due - time.monotonic()))
                writer.write(chunk)
                await writer.drain()

        leaving, free = asyncio.create_task(leave()), time.monotonic()
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while chunk := await reader.read(_CHUNK):
                free = max(free, time.monotonic()) + len(chunk) / RATE
                if self._random.random() < LOSS:
                    free += STALL
                await queue.put((free + DELAY, chunk))
        await queue.put(None)
        with contextlib.suppress(OSError):
            await leaving
        with contextlib.suppress(OSError):
            writer.close()
