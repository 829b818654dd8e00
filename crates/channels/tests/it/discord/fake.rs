//! The strict server itself: a client of others' making works with it.

use std::process::Stdio;
use std::time::Duration;

use hermes_testkit::discord::people::{ALICE, DIRECT, FORUM, GENERAL};
use hermes_testkit::discord::{BOT_ID, CallFault, DiscordServer, TOKEN};
use hermes_testkit::peers;
use serde_json::{Value, json};

/// What the most used client of Discord does with the server, in its own words.
const PROGRAM: &str = r#"
import asyncio, io, sys
import discord, yarl

base, gateway, token, general, forum, alice = sys.argv[1:7]
discord.http.Route.BASE = base + "/api/v10"
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)
discord.utils.setup_logging()
intents = discord.Intents.default()
intents.message_content = True
client = discord.Client(intents=intents)
heard = asyncio.Queue()
resumed = asyncio.Event()

@client.event
async def on_message(message):
    if message.author != client.user:
        await heard.put(message)

@client.event
async def on_resumed():
    resumed.set()

async def refused(kind, code, call):
    try:
        await call
    except kind as error:
        assert error.code == code, (error.code, str(error))
        return error
    raise AssertionError(f"{code}: it was not refused")

class Consent(discord.ui.View):
    def __init__(self):
        super().__init__(timeout=30)
        self.pressed = asyncio.Event()

    @discord.ui.button(label="Yes", custom_id="ea:once:1")
    async def yes(self, interaction, button):
        await interaction.response.defer()
        await interaction.followup.send("thank you", ephemeral=True)
        self.pressed.set()

async def main():
    await client.wait_until_ready()
    assert client.user.name == "hermes-test", client.user
    channel = client.get_channel(int(general))
    assert channel.guild.name == "Friends" and channel.name == "general"
    hello = await asyncio.wait_for(heard.get(), 20)
    assert hello.content == f"<@{client.user.id}> hello" and client.user in hello.mentions, hello
    assert hello.author.display_name == "Alice" and hello.channel == channel

    answer = await hello.reply("**hi**", mention_author=False)
    assert answer.reference.message_id == hello.id and answer.content == "**hi**"
    await answer.edit(content="hi again")
    assert (await channel.fetch_message(answer.id)).content == "hi again"
    await refused(discord.NotFound, 10008, channel.fetch_message(9999))
    await refused(discord.HTTPException, 50035, channel.send("x" * 2001))
    await refused(discord.HTTPException, 50006, channel.send(""))
    await refused(discord.NotFound, 10003, client.fetch_channel(404))
    lost = discord.MessageReference(message_id=9999, channel_id=channel.id, fail_if_not_exists=True)
    await refused(discord.HTTPException, 50035, channel.send("x", reference=lost))
    await hello.add_reaction("👀")
    await hello.remove_reaction("👀", client.user)
    async with channel.typing():
        pass
    file = await channel.send("see", file=discord.File(io.BytesIO(b"content"), "a.txt"))
    assert file.attachments[0].filename == "a.txt"
    assert await file.attachments[0].read() == b"content"
    thread = await hello.create_thread(name="Plans", auto_archive_duration=1440)
    assert thread.id == hello.id and thread.parent == channel
    await refused(discord.HTTPException, 160004, hello.create_thread(name="Plans"))
    await thread.send("in the thread")
    post = await client.get_channel(int(forum)).create_thread(name="Question", content="How?")
    assert post.thread.id == post.message.id and post.message.content == "How?", post
    await file.delete()
    await refused(discord.NotFound, 10008, file.delete())
    history = [message.content async for message in channel.history(limit=10)]
    assert history == ["hi again", f"<@{client.user.id}> hello"], history

    consent = Consent()
    await channel.send("May I?", view=consent)
    await asyncio.wait_for(consent.pressed.wait(), 20)

    await channel.send("hang up")
    missed = await asyncio.wait_for(heard.get(), 20)
    assert missed.content == "missed" and missed.guild is None, missed
    await asyncio.wait_for(resumed.wait(), 20)
    print("all is well", flush=True)

async def run():
    try:
        await discord.Client(intents=intents).login(token + "x")
    except discord.LoginFailure:
        pass
    else:
        raise AssertionError("a wrong token is accepted")
    async with client:
        talking = asyncio.create_task(client.start(token))
        while not client.is_ready():
            await asyncio.sleep(0.05)
            if talking.done():
                await talking
        await main()

asyncio.run(run())
"#;

/// Waits until the bot has said something that fits.
async fn said(server: &DiscordServer, fits: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..4000 {
        if let Some(message) = server.ours(GENERAL).into_iter().find(&fits) {
            return message;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never says it: {:#?}", server.ours(GENERAL));
}

/// What people do while the client is there.
async fn play(server: &DiscordServer) {
    while server.sessions_count() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.say(GENERAL, json!({"content": format!("<@{BOT_ID}> hello")}));
    said(server, |message| message["content"] == "hi again").await;
    let question = said(server, |message| message["content"] == "May I?").await;
    let token = server.press(GENERAL, question["id"].as_str().unwrap(), "ea:once:1");
    said(server, |message| message["content"] == "hang up").await;
    assert_eq!(
        server.noticed(&token),
        Some((6, vec!["thank you".to_owned()]))
    );
    server.drop_sockets();
    server.say(DIRECT, json!({"content": "missed"}));
}

#[tokio::test]
async fn a_client_of_others_works_with_the_server() {
    let Some(folder) = peers::installed("discord.py") else {
        return;
    };
    let server = DiscordServer::start().await.with_channels();
    let python = folder.join("bin/python");
    let (url, gateway) = (server.url(), server.gateway_url());
    let client = tokio::task::spawn_blocking(move || {
        let mut program = peers::program(&python.to_string_lossy());
        program.args(["-c", PROGRAM, &url, &gateway, TOKEN, GENERAL, FORUM, ALICE]);
        program
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .unwrap()
    });
    let playing = async {
        play(&server).await;
        std::future::pending::<()>().await;
    };
    // It waits for as long as it is told, and tries again.
    let route = format!("POST /channels/{FORUM}/threads");
    server.fail(&route, CallFault::Throttle(0.2));
    let output = tokio::select! {
        output = client => output.unwrap(),
        () = playing => unreachable!("people wait for ever"),
    };
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && told.contains("all is well"),
        "{told}{errors}"
    );
    assert_eq!(server.calls_of(&route).len(), 2);
}
