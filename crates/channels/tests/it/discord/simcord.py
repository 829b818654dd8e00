"""Puts simcord, which plays Discord inside one Python process, on a port: its API, a gateway in front of its events, and what
people do there below /people. One world at a time; every case makes its own."""
import asyncio
import base64
import io
import json
import sys
import types

import simcord.http.client  # its routes are known once this is there
from aiohttp import WSMsgType, web
from simcord import interactions
from simcord.backend import Backend, serializers
from simcord.backend.cdn import CDN_BASE
from simcord.backend.errors import BackendError
from simcord.http import router

PORT, TOKEN = int(sys.argv[1]), sys.argv[2]
BASE = f"http://127.0.0.1:{PORT}"


class World:
    def __init__(self):
        self.backend = backend = Backend()
        self.guild = backend.create_guild("Friends")
        self.person = backend.make_user("alice", global_name="Alice")
        backend.add_member(self.guild.id, self.person.id)
        self.channel = backend.create_channel(self.guild.id, "general")
        self.direct = backend.get_dm_channel(self.person.id)
        self.thread = backend.create_thread(self.channel.id, "Plans", self.person.id)
        self.token = TOKEN
        self.sessions = {}
        self.sockets = set()
        self.faults = []
        self.typing = []
        backend.subscribers.append(self.tell)

    def tell(self, event, payload):
        for session in self.sessions.values():
            session["events"].append((event, json.loads(local(json.dumps(payload, default=str)))))
        for socket in self.sockets:
            socket.news.set()


world = World()


def local(text):
    return text.replace(CDN_BASE, BASE)


async def api(request):
    path = request.rel_url.raw_path.removeprefix("/api/v10")
    is_open = path.startswith(("/interactions/", "/webhooks/"))
    if not is_open and request.headers.get("Authorization") != f"Bot {world.token}":
        return web.json_response({"message": "401: Unauthorized", "code": 0}, status=401)
    if path == "/gateway/bot":
        limit = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1}
        return web.json_response({"url": f"ws://127.0.0.1:{PORT}/gateway", "shards": 1, "session_start_limit": limit})
    body, files = None, []
    if request.content_type == "multipart/form-data":
        form = await request.post()
        body = json.loads(form.get("payload_json", "{}"))
        for name, part in form.items():
            if name.startswith("files["):
                files.append(types.SimpleNamespace(fp=io.BytesIO(part.file.read()), filename=part.filename, description=None))
    elif request.can_read_body:
        body = await request.json()
    is_send = request.method == "POST" and path.endswith("/messages")
    fault = world.faults.pop(0) if is_send and world.faults else None
    if fault == "lose call":
        request.transport.close()
        return web.Response()
    if fault == "garbage":
        return web.Response(status=502, text="<html>502 Bad Gateway</html>")
    if isinstance(fault, float):
        answer = {"message": "You are being rate limited.", "retry_after": fault, "global": False}
        return web.json_response(answer, status=429, headers={"Via": "1.1 google"})
    if request.method == "POST" and path.endswith("/typing"):
        world.typing.append(path.split("/")[2])
    try:
        answer = router.dispatch(world.backend, request.method, path, json=body, params=dict(request.query), files=files)
    except BackendError as error:
        return web.json_response(error.to_json(), status=error.status)
    if fault == "lose answer":
        request.transport.close()
        return web.Response()
    if answer is None:
        return web.Response(status=204)
    return web.Response(text=local(json.dumps(answer, default=str)), content_type="application/json")


async def gateway(request):
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    socket.news = asyncio.Event()
    mine = world
    mine.sockets.add(socket)
    session, sent = None, 0
    await socket.send_json({"op": 10, "s": None, "t": None, "d": {"heartbeat_interval": 2000}})
    frames = asyncio.create_task(socket.receive())
    try:
        while not socket.closed:
            news = asyncio.create_task(socket.news.wait())
            await asyncio.wait({frames, news}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
            socket.news.clear()
            if frames.done():
                frame = frames.result()
                if frame.type != WSMsgType.TEXT:
                    return socket
                said = json.loads(frame.data)
                data = said.get("d")
                if said["op"] == 1:
                    await socket.send_json({"op": 11, "s": None, "t": None, "d": None})
                elif said["op"] in (2, 6) and data["token"] != mine.token:
                    await socket.close(code=4004)
                    return socket
                elif said["op"] == 2:
                    session = f"session-{len(mine.sessions)}"
                    user = serializers.user_payload(mine.backend.bot_user)
                    application = {"id": str(mine.backend.application_id), "flags": 0}
                    ready = {"v": 10, "user": user, "session_id": session, "application": application,
                             "resume_gateway_url": f"ws://127.0.0.1:{PORT}/gateway", "guilds": [{"id": str(mine.guild.id), "unavailable": True}]}
                    known = serializers.guild_create_payload(mine.backend, mine.guild)
                    mine.sessions[session] = {"events": [("READY", ready), ("GUILD_CREATE", known)]}
                elif said["op"] == 6 and data["session_id"] not in mine.sessions:
                    await socket.send_json({"op": 9, "s": None, "t": None, "d": False})
                elif said["op"] == 6:
                    session, sent = data["session_id"], data["seq"]
                    mine.sessions[session]["events"].append(("RESUMED", {}))
                frames = asyncio.create_task(socket.receive())
            events = mine.sessions[session]["events"] if session else []
            while sent < len(events):
                event, payload = events[sent]
                sent += 1
                await socket.send_str(json.dumps({"op": 0, "s": sent, "t": event, "d": payload}, default=str))
    finally:
        frames.cancel()
        mine.sockets.discard(socket)
    return socket


async def people(request):
    global world
    asked = await request.json()
    what = request.match_info["what"]
    backend = world.backend
    if what == "begin":
        for socket in list(world.sockets):
            await socket.close()
        world = World()
        places = {"direct": world.direct.id, "group": world.channel.id, "thread": world.thread.id}
        return web.json_response({name: str(place) for name, place in places.items()} | {"bot": str(world.backend.bot_user.id)})
    channel = int(asked.get("channel", 0))
    if what == "say":
        files = []
        if asked.get("file"):
            data = base64.b64decode(asked["file"]["bytes"])
            files = [backend.cdn.store_attachment(backend.snowflake(), channel, asked["file"]["name"], data, None)]
        reference = asked.get("replies_to")
        reference = {"message_id": reference, "channel_id": str(channel)} if reference else None
        flags = 1 << 13 if asked.get("is_voice") else 0
        message = backend.create_message(channel, world.person.id, asked["text"], attachments=files, reference=reference, flags=flags)
        return web.json_response({"id": str(message.id)})
    if what == "edit":
        backend.advance_clock(1)
        backend.edit_message(channel, int(asked["message"]), {"content": asked["text"]})
    if what == "press":
        guild = None if channel == world.direct.id else world.guild.id
        data = {"component_type": 2, "custom_id": asked["data"]}
        record, payload = interactions.base_payload(backend, type=3, channel_id=channel, guild_id=guild, user_id=world.person.id, data=data)
        message = backend.get_message(channel, int(asked["message"]))
        record.source_message_id = message.id
        payload["message"] = serializers.message_payload(backend, message)
        backend.emit("INTERACTION_CREATE", payload)
    if what == "seen":
        found = []
        for message in backend.messages.get(channel, {}).values():
            told = dict(serializers.message_payload(backend, message))
            told["files"] = [base64.b64encode(backend.cdn.get(file["url"]) or b"").decode() for file in told["attachments"]]
            found.append(told)
        return web.Response(text=json.dumps(found, default=str), content_type="application/json")
    if what == "typing":
        return web.json_response({"count": world.typing.count(asked["channel"])})
    if what == "fault":
        world.faults.append(asked["fault"])
    if what == "drop":
        for socket in list(world.sockets):
            await socket.close(code=4000)
    if what == "rotate":
        world.token = "another"
    return web.json_response({})


async def file(request):
    data = world.backend.cdn.get(CDN_BASE + request.rel_url.path)
    return web.Response(body=data) if data is not None else web.Response(status=404)


app = web.Application(client_max_size=64 << 20)
app.router.add_route("*", "/api/v10/{rest:.*}", api)
app.router.add_get("/gateway", gateway)
app.router.add_get("/attachments/{rest:.*}", file)
app.router.add_post("/people/{what}", people)
web.run_app(app, host="127.0.0.1", port=PORT, print=None)
