//! The strict server itself: a client of others' making works with it, and it reads MarkdownV2 as Telegram does.

use std::process::Stdio;

use hermes_testkit::peers;
use hermes_testkit::telegram::people::ALICE;
use hermes_testkit::telegram::{TOKEN, TdLib, TelegramServer, markup};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;

/// What the most used client of the Bot API does with the server, in its own words.
const PROGRAM: &str = r#"
import asyncio, io, sys
from telegram import Bot, BotCommand, InlineKeyboardButton, InlineKeyboardMarkup, ReactionTypeEmoji, ReplyParameters
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, RetryAfter

base, token, alice = sys.argv[1], sys.argv[2], int(sys.argv[3])

async def refused(kind, words, call):
    try:
        await call
    except kind as error:
        assert words.lower() in str(error).lower(), str(error)
        return error
    raise AssertionError(f"{words}: it was not refused")

async def main():
    bot = Bot(token, base_url=base + "/bot", base_file_url=base + "/file/bot")
    async with bot:
        assert (await bot.get_me()).username == "hermes_test_bot"
        await bot.delete_webhook(drop_pending_updates=False)
        updates = await bot.get_updates(timeout=5, allowed_updates=["message"])
        assert [update.message.text for update in updates] == ["hello"], updates
        assert updates[0].effective_user.first_name == "Alice"
        assert await bot.get_updates(offset=updates[0].update_id + 1, timeout=0) == ()

        sent = await bot.send_message(alice, r"*bold* and \. dots", parse_mode="MarkdownV2",
            reply_parameters=ReplyParameters(updates[0].message.message_id),
            reply_markup=InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="y")]]))
        assert sent.text == "bold and . dots" and sent.entities[0].type == "bold", sent
        assert sent.reply_to_message.text == "hello"
        edited = await bot.edit_message_text("other", alice, sent.message_id)
        assert edited.text == "other" and edited.edit_date
        await refused(BadRequest, "not modified", bot.edit_message_text("other", alice, sent.message_id))
        await refused(BadRequest, "to edit not found", bot.edit_message_text("other", alice, 9999))
        await refused(BadRequest, "an't parse entities", bot.send_message(alice, "a.b", parse_mode="MarkdownV2"))
        await refused(BadRequest, "too long", bot.send_message(alice, "😀" * 2049))
        await refused(BadRequest, "hat not found", bot.send_message(5, "x"))
        await refused(BadRequest, "BUTTON_DATA_INVALID", bot.send_message(alice, "x",
            reply_markup=InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="y" * 65)]])))
        assert await bot.send_message_draft(alice, 7, "half an answer")
        await refused(BadRequest, "RANDOM_ID_INVALID", bot.send_message_draft(alice, 0, "half an answer"))
        await bot.send_chat_action(alice, "typing")
        await bot.set_message_reaction(alice, updates[0].message.message_id, [ReactionTypeEmoji("👀")])
        await bot.set_my_commands([BotCommand("new", "Begin anew")])

        document = await bot.send_document(alice, io.BytesIO(b"content"), filename="a.txt", caption="see")
        assert document.document.file_name == "a.txt" and document.caption == "see"
        file = await bot.get_file(document.document.file_id)
        assert bytes(await file.download_as_bytearray()) == b"content"
        await bot.delete_message(alice, sent.message_id)
        await refused(BadRequest, "to delete not found", bot.delete_message(alice, sent.message_id))

        async def overtaken():
            await asyncio.sleep(0.3)
            async with Bot(token, base_url=base + "/bot") as other:
                return await other.get_updates(timeout=0)
        await asyncio.gather(refused(Conflict, "terminated by other", bot.get_updates(timeout=20)), overtaken())
        await bot.set_webhook("https://example.org/hook", secret_token="s")
        await refused(Conflict, "webhook is active", bot.get_updates(timeout=0))
        assert (await bot.get_webhook_info()).url == "https://example.org/hook"

        error = await refused(RetryAfter, "", bot.send_voice(alice, io.BytesIO(b"OggS")))
        assert int(getattr(error, "_retry_after", None) and error._retry_after.total_seconds() or error.retry_after) == 3
        print("all is well")
    wrong = Bot(token + "x", base_url=base + "/bot")
    await refused(InvalidToken, "", wrong.get_me())

asyncio.run(main())
"#;

#[tokio::test]
async fn a_client_of_others_works_with_the_server() {
    let Some(folder) = peers::installed("python-telegram-bot") else {
        return;
    };
    let server = TelegramServer::start().await.with_chats();
    server.say(ALICE, json!({"text": "hello"}));
    server.fail(
        "sendVoice",
        hermes_testkit::telegram::CallFault::Throttle(3),
    );
    let url = server.url();
    let python = folder.join("bin/python");
    let client = tokio::task::spawn_blocking(move || {
        let mut program = peers::program(&python.to_string_lossy());
        program.args(["-c", PROGRAM, &url, TOKEN, &ALICE.to_string()]);
        program
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .unwrap()
    });
    let output = client.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && said.contains("all is well"),
        "{said}{errors}"
    );
}

/// Texts with as many signs as words, most of them wrong.
fn marked() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        2 => "[a-z😀]{1,3}",
        3 => prop::sample::select(vec![
            "*", "_", "__", "~", "||", "`", "```", "```rust\n", "[a](http://b.c)", "[", "](http://b.c)", "\n", "\n>", ">", "\\.", "\\*",
            ".", "\\", " ",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

/// What Telegram refuses, the server refuses; what it takes, it sees as Telegram does. About signs of quotes inside of other
/// signs it may be stricter.
#[test]
fn the_server_reads_markdown_as_telegram_does() {
    let Some(mut tdlib) = TdLib::start() else {
        return;
    };
    let mut runner = TestRunner::default();
    let mut taken = (0, 0);
    for _ in 0..5000 {
        let text = marked().new_tree(&mut runner).unwrap().current();
        let (ours, telegrams) = (markup::parse(&text), tdlib.parse(&text));
        taken.0 += usize::from(telegrams.is_ok());
        if let Ok(ours) = ours {
            assert_eq!(
                Ok(ours.text),
                telegrams.map(|parsed| parsed.text),
                "{text:?}"
            );
            taken.1 += 1;
        }
    }
    assert!(taken.1 > 500 && taken.1 * 100 >= taken.0 * 95, "{taken:?}");
}
