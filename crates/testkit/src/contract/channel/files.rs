//! Files, in and out.

use std::path::Path;

use futures_util::TryStreamExt as _;
use hermes_core::{AttachmentKind, Body, Trouble};

use super::{Bench, LeftOut, Place, PlatformSide, Played, Said, SaidFile};
use crate::PIXEL_PNG;

fn said(kind: AttachmentKind, name: &str, bytes: &[u8], text: &str) -> Said {
    Said {
        file: Some(SaidFile {
            kind,
            name: name.to_owned(),
            bytes: bytes.to_vec(),
        }),
        ..Said::words(text)
    }
}

async fn fetched<S: PlatformSide>(bench: &Bench<S>, file: &str) -> Vec<u8> {
    let pieces = bench.channel.download(file).await.unwrap();
    let pieces: Vec<Vec<u8>> = pieces.try_collect().await.unwrap();
    pieces.concat()
}

pub(super) async fn a_file_arrives_with_its_bytes<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let bytes: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
    let message = bench
        .hear(
            Place::Direct,
            said(AttachmentKind::Document, "a b.bin", &bytes, ""),
        )
        .await?;
    let [file] = message.attachments.as_slice() else {
        panic!("one file: {message:?}");
    };
    assert_eq!(file.kind, AttachmentKind::Document);
    assert_eq!(file.name.as_deref(), Some("a b.bin"));
    assert!(file.bytes.is_none_or(|count| count == 200_000));
    assert_eq!(fetched(bench, &file.file).await, bytes);
    Ok(())
}

pub(super) async fn a_picture_arrives_as_one<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let message = bench
        .hear(
            Place::Direct,
            said(AttachmentKind::Picture, "a.png", PIXEL_PNG, ""),
        )
        .await?;
    let [file] = message.attachments.as_slice() else {
        panic!("one file: {message:?}");
    };
    assert_eq!(file.kind, AttachmentKind::Picture);
    assert!(
        file.mime
            .as_deref()
            .is_some_and(|mime| mime.starts_with("image/"))
    );
    assert_eq!(fetched(bench, &file.file).await, PIXEL_PNG);
    Ok(())
}

pub(super) async fn a_voice_arrives_as_one<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let message = bench
        .hear(
            Place::Direct,
            said(AttachmentKind::Voice, "a.ogg", b"OggS....", ""),
        )
        .await?;
    let [file] = message.attachments.as_slice() else {
        panic!("one file: {message:?}");
    };
    assert_eq!(file.kind, AttachmentKind::Voice);
    Ok(())
}

pub(super) async fn a_file_and_its_words_come_together<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    bench.connect().await;
    let message = bench
        .hear(
            Place::Direct,
            said(AttachmentKind::Document, "a.txt", b"hello", "read this"),
        )
        .await?;
    assert_eq!(message.text, "read this");
    assert_eq!(message.attachments.len(), 1);
    Ok(())
}

pub(super) async fn an_album_is_told_as_one<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let mut albums = Vec::new();
    for _ in 0..3 {
        let picture = Said {
            album: Some("holiday".to_owned()),
            ..said(AttachmentKind::Picture, "a.png", PIXEL_PNG, "")
        };
        albums.push(bench.hear(Place::Direct, picture).await?.album);
    }
    albums[0].as_ref().ok_or(LeftOut)?;
    assert!(albums.iter().all(|album| *album == albums[0]));
    Ok(())
}

pub(super) async fn a_file_that_is_not_there_is_an_error<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    let Err(error) = bench.channel.download("no-such-file").await else {
        panic!("there is no such file");
    };
    assert!(!error.message.is_empty());
    Ok(())
}

fn file(path: &Path, kind: AttachmentKind, name: &str, caption: &str) -> Body {
    Body::File {
        path: path.to_owned(),
        kind,
        name: name.to_owned(),
        caption: caption.to_owned(),
    }
}

/// Sends a file of ours; returns its name and bytes as people see them, and what stands below it.
async fn sent<S: PlatformSide>(
    bench: &Bench<S>,
    kind: AttachmentKind,
    name: &str,
    bytes: &[u8],
    caption: &str,
) -> Result<(String, Vec<u8>, String), LeftOut> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached");
    std::fs::write(&path, bytes).unwrap();
    let message = bench.outgoing(Place::Direct, file(&path, kind, name, caption))?;
    let id = match bench.channel.send(&message).await {
        Err(error) if error.trouble == Trouble::Unsupported => return Err(LeftOut),
        sent => sent.unwrap(),
    };
    let seen = bench.seen_as(Place::Direct, &id).await.expect("it is seen");
    let (name, bytes) = seen.file.ok_or(LeftOut)?;
    Ok((name, bytes, seen.text))
}

pub(super) async fn a_file_of_ours_is_seen<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let (name, bytes, _) = sent(
        bench,
        AttachmentKind::Document,
        "report.pdf",
        b"%PDF-1.7",
        "",
    )
    .await?;
    assert_eq!(name, "report.pdf");
    assert_eq!(bytes, b"%PDF-1.7");
    Ok(())
}

pub(super) async fn a_picture_of_ours_is_seen<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let (_, bytes, _) = sent(bench, AttachmentKind::Picture, "dot.png", PIXEL_PNG, "").await?;
    assert_eq!(bytes, PIXEL_PNG);
    Ok(())
}

pub(super) async fn a_picture_that_is_none_is_still_sent<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    let (_, bytes, _) = sent(
        bench,
        AttachmentKind::Picture,
        "dot.png",
        b"not a picture",
        "",
    )
    .await?;
    assert_eq!(bytes, b"not a picture");
    Ok(())
}

pub(super) async fn a_caption_is_seen<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let (_, _, caption) = sent(
        bench,
        AttachmentKind::Document,
        "a.txt",
        b"a",
        "the **file** you wanted.",
    )
    .await?;
    assert_eq!(caption, "the file you wanted.");
    Ok(())
}

pub(super) async fn a_missing_file_is_refused<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let body = file(
        Path::new("/no/such/file"),
        AttachmentKind::Document,
        "a.txt",
        "",
    );
    let error = bench
        .channel
        .send(&bench.outgoing(Place::Direct, body)?)
        .await
        .unwrap_err();
    assert!(
        matches!(error.trouble, Trouble::Refused | Trouble::Unsupported),
        "{error:?}"
    );
    Ok(())
}
