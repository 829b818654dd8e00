//! What the bytes of simple fonts stand for when a document does not map them itself.

/// The named sets of characters; bytes below 128 are ASCII in all of them, but for two quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Standard,
    WinAnsi,
    MacRoman,
}

impl Base {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "StandardEncoding" => Some(Self::Standard),
            "WinAnsiEncoding" | "PDFDocEncoding" => Some(Self::WinAnsi),
            "MacRomanEncoding" => Some(Self::MacRoman),
            _ => None,
        }
    }

    pub(super) fn character(self, byte: u8) -> char {
        let after = |start: u8, characters: &str| {
            let at = usize::from(byte.wrapping_sub(start));
            characters.chars().nth(at)
        };
        let special = match (self, byte) {
            (Self::Standard, _) => STANDARD
                .iter()
                .find(|(code, _)| *code == byte)
                .map(|(_, character)| *character),
            (Self::WinAnsi, 0x80..0xa0) => after(0x80, WIN_ANSI),
            (Self::MacRoman, 0x80..) => after(0x80, MAC_ROMAN),
            _ => None,
        };
        special.unwrap_or(char::from(byte))
    }
}

/// Returns the text of a glyph by its name: one of the list below, a single letter, `uni20AC` or `u1F600`.
pub(super) fn glyph(name: &str) -> Option<String> {
    let name = name.split('.').next().unwrap_or(name);
    if let Ok(at) = GLYPHS.binary_search_by_key(&name, |(known, _)| known) {
        return Some(GLYPHS[at].1.to_owned());
    }
    if name.len() == 1 {
        return Some(name.to_owned());
    }
    let digits = name
        .strip_prefix("uni")
        .or_else(|| name.strip_prefix('u'))?;
    let code = u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| digits.len() >= 4)?;
    char::from_u32(code).map(String::from)
}

/// Bytes from 0x80 to 0x9f; the others are Latin-1. Unused ones are bullets, as writers expect.
const WIN_ANSI: &str = "€•‚ƒ„…†‡ˆ‰Š‹Œ•Ž••‘’“”•–—˜™š›œ•žŸ";

/// Bytes from 0x80.
const MAC_ROMAN: &str = "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»… ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ•ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ";

/// Bytes that are not what they are in Latin-1.
const STANDARD: &[(u8, char)] = &[
    (0x27, '’'),
    (0x60, '‘'),
    (0xa4, '⁄'),
    (0xa6, 'ƒ'),
    (0xa8, '¤'),
    (0xa9, '\''),
    (0xaa, '“'),
    (0xac, '‹'),
    (0xad, '›'),
    (0xae, 'ﬁ'),
    (0xaf, 'ﬂ'),
    (0xb1, '–'),
    (0xb2, '†'),
    (0xb3, '‡'),
    (0xb4, '·'),
    (0xb7, '•'),
    (0xb8, '‚'),
    (0xb9, '„'),
    (0xba, '”'),
    (0xbc, '…'),
    (0xbd, '‰'),
    (0xc1, '`'),
    (0xc2, '´'),
    (0xc3, 'ˆ'),
    (0xc4, '˜'),
    (0xc5, '¯'),
    (0xc8, '¨'),
    (0xcb, '¸'),
    (0xd0, '—'),
    (0xe1, 'Æ'),
    (0xe3, 'ª'),
    (0xe8, 'Ł'),
    (0xe9, 'Ø'),
    (0xea, 'Œ'),
    (0xeb, 'º'),
    (0xf1, 'æ'),
    (0xf5, 'ı'),
    (0xf8, 'ł'),
    (0xf9, 'ø'),
    (0xfa, 'œ'),
    (0xfb, 'ß'),
];

/// Names of glyphs that texts in Latin letters are made of, in the order of their bytes.
#[rustfmt::skip]
const GLYPHS: &[(&str, &str)] = &[
    ("AE", "Æ"), ("Aacute", "Á"), ("Abreve", "Ă"), ("Acaron", "Ǎ"), ("Acircumflex", "Â"), ("Adieresis", "Ä"),
    ("Adotaccent", "Ȧ"), ("Agrave", "À"), ("Amacron", "Ā"), ("Aogonek", "Ą"), ("Aring", "Å"), ("Atilde", "Ã"),
    ("Bdotaccent", "Ḃ"), ("Cacute", "Ć"), ("Ccaron", "Č"), ("Ccedilla", "Ç"), ("Ccircumflex", "Ĉ"),
    ("Cdotaccent", "Ċ"), ("Dcaron", "Ď"), ("Dcedilla", "Ḑ"), ("Dcroat", "Đ"), ("Ddotaccent", "Ḋ"), ("Delta", "Δ"),
    ("Eacute", "É"), ("Ebreve", "Ĕ"), ("Ecaron", "Ě"), ("Ecedilla", "Ȩ"), ("Ecircumflex", "Ê"), ("Edieresis", "Ë"),
    ("Edotaccent", "Ė"), ("Egrave", "È"), ("Emacron", "Ē"), ("Eogonek", "Ę"), ("Eth", "Ð"), ("Etilde", "Ẽ"),
    ("Euro", "€"), ("Fdotaccent", "Ḟ"), ("Gacute", "Ǵ"), ("Gamma", "Γ"), ("Gbreve", "Ğ"), ("Gcaron", "Ǧ"),
    ("Gcedilla", "Ģ"), ("Gcircumflex", "Ĝ"), ("Gdotaccent", "Ġ"), ("Gmacron", "Ḡ"), ("Hcaron", "Ȟ"),
    ("Hcedilla", "Ḩ"), ("Hcircumflex", "Ĥ"), ("Hdieresis", "Ḧ"), ("Hdotaccent", "Ḣ"), ("Iacute", "Í"),
    ("Ibreve", "Ĭ"), ("Icaron", "Ǐ"), ("Icircumflex", "Î"), ("Idieresis", "Ï"), ("Idotaccent", "İ"), ("Igrave", "Ì"),
    ("Imacron", "Ī"), ("Iogonek", "Į"), ("Itilde", "Ĩ"), ("Jcircumflex", "Ĵ"), ("Kacute", "Ḱ"), ("Kcaron", "Ǩ"),
    ("Kcedilla", "Ķ"), ("Lacute", "Ĺ"), ("Lambda", "Λ"), ("Lcaron", "Ľ"), ("Lcedilla", "Ļ"), ("Lslash", "Ł"),
    ("Macute", "Ḿ"), ("Mdotaccent", "Ṁ"), ("Nacute", "Ń"), ("Ncaron", "Ň"), ("Ncedilla", "Ņ"), ("Ndotaccent", "Ṅ"),
    ("Ngrave", "Ǹ"), ("Ntilde", "Ñ"), ("OE", "Œ"), ("Oacute", "Ó"), ("Obreve", "Ŏ"), ("Ocaron", "Ǒ"),
    ("Ocircumflex", "Ô"), ("Odieresis", "Ö"), ("Odotaccent", "Ȯ"), ("Ograve", "Ò"), ("Ohungarumlaut", "Ő"),
    ("Omacron", "Ō"), ("Omega", "Ω"), ("Oogonek", "Ǫ"), ("Oslash", "Ø"), ("Otilde", "Õ"), ("Pacute", "Ṕ"),
    ("Pdotaccent", "Ṗ"), ("Phi", "Φ"), ("Psi", "Ψ"), ("Racute", "Ŕ"), ("Rcaron", "Ř"), ("Rcedilla", "Ŗ"),
    ("Rdotaccent", "Ṙ"), ("Sacute", "Ś"), ("Scaron", "Š"), ("Scedilla", "Ş"), ("Scircumflex", "Ŝ"),
    ("Scommaaccent", "Ș"), ("Sdotaccent", "Ṡ"), ("Sigma", "Σ"), ("Tcaron", "Ť"), ("Tcedilla", "Ţ"),
    ("Tcommaaccent", "Ț"), ("Tdotaccent", "Ṫ"), ("Theta", "Θ"), ("Thorn", "Þ"), ("Uacute", "Ú"), ("Ubreve", "Ŭ"),
    ("Ucaron", "Ǔ"), ("Ucircumflex", "Û"), ("Udieresis", "Ü"), ("Ugrave", "Ù"), ("Uhungarumlaut", "Ű"),
    ("Umacron", "Ū"), ("Uogonek", "Ų"), ("Uring", "Ů"), ("Utilde", "Ũ"), ("Vtilde", "Ṽ"), ("Wacute", "Ẃ"),
    ("Wcircumflex", "Ŵ"), ("Wdieresis", "Ẅ"), ("Wdotaccent", "Ẇ"), ("Wgrave", "Ẁ"), ("Xdieresis", "Ẍ"),
    ("Xdotaccent", "Ẋ"), ("Yacute", "Ý"), ("Ycircumflex", "Ŷ"), ("Ydieresis", "Ÿ"), ("Ydotaccent", "Ẏ"),
    ("Ygrave", "Ỳ"), ("Ymacron", "Ȳ"), ("Ytilde", "Ỹ"), ("Zacute", "Ź"), ("Zcaron", "Ž"), ("Zcircumflex", "Ẑ"),
    ("Zdotaccent", "Ż"), ("aacute", "á"), ("abreve", "ă"), ("acaron", "ǎ"), ("acircumflex", "â"), ("acute", "´"),
    ("adieresis", "ä"), ("adotaccent", "ȧ"), ("ae", "æ"), ("agrave", "à"), ("alpha", "α"), ("amacron", "ā"),
    ("ampersand", "&"), ("aogonek", "ą"), ("approxequal", "≈"), ("aring", "å"), ("arrowdown", "↓"),
    ("arrowleft", "←"), ("arrowright", "→"), ("arrowup", "↑"), ("asciicircum", "^"), ("asciitilde", "~"),
    ("asterisk", "*"), ("at", "@"), ("atilde", "ã"), ("backslash", "\\"), ("bar", "|"), ("bdotaccent", "ḃ"),
    ("beta", "β"), ("braceleft", "{"), ("braceright", "}"), ("bracketleft", "["), ("bracketright", "]"),
    ("brokenbar", "¦"), ("bullet", "•"), ("cacute", "ć"), ("ccaron", "č"), ("ccedilla", "ç"), ("ccircumflex", "ĉ"),
    ("cdotaccent", "ċ"), ("cedilla", "¸"), ("cent", "¢"), ("circumflex", "ˆ"), ("colon", ":"), ("comma", ","),
    ("copyright", "©"), ("currency", "¤"), ("dagger", "†"), ("daggerdbl", "‡"), ("dcaron", "ď"), ("dcedilla", "ḑ"),
    ("dcroat", "đ"), ("ddotaccent", "ḋ"), ("degree", "°"), ("delta", "δ"), ("dieresis", "¨"), ("divide", "÷"),
    ("dollar", "$"), ("dotlessi", "ı"), ("eacute", "é"), ("ebreve", "ĕ"), ("ecaron", "ě"), ("ecedilla", "ȩ"),
    ("ecircumflex", "ê"), ("edieresis", "ë"), ("edotaccent", "ė"), ("egrave", "è"), ("eight", "8"), ("ellipsis", "…"),
    ("emacron", "ē"), ("emdash", "—"), ("endash", "–"), ("eogonek", "ę"), ("epsilon", "ε"), ("equal", "="),
    ("eta", "η"), ("eth", "ð"), ("etilde", "ẽ"), ("exclam", "!"), ("exclamdown", "¡"), ("fdotaccent", "ḟ"),
    ("ff", "ff"), ("ffi", "ffi"), ("ffl", "ffl"), ("fi", "fi"), ("five", "5"), ("fl", "fl"), ("florin", "ƒ"),
    ("four", "4"), ("fraction", "⁄"), ("gacute", "ǵ"), ("gamma", "γ"), ("gbreve", "ğ"), ("gcaron", "ǧ"),
    ("gcedilla", "ģ"), ("gcircumflex", "ĝ"), ("gdotaccent", "ġ"), ("germandbls", "ß"), ("gmacron", "ḡ"),
    ("grave", "`"), ("greater", ">"), ("greaterequal", "≥"), ("guillemotleft", "«"), ("guillemotright", "»"),
    ("guilsinglleft", "‹"), ("guilsinglright", "›"), ("hcaron", "ȟ"), ("hcedilla", "ḩ"), ("hcircumflex", "ĥ"),
    ("hdieresis", "ḧ"), ("hdotaccent", "ḣ"), ("hyphen", "-"), ("iacute", "í"), ("ibreve", "ĭ"), ("icaron", "ǐ"),
    ("icircumflex", "î"), ("idieresis", "ï"), ("igrave", "ì"), ("imacron", "ī"), ("infinity", "∞"), ("integral", "∫"),
    ("iogonek", "į"), ("itilde", "ĩ"), ("jcaron", "ǰ"), ("jcircumflex", "ĵ"), ("kacute", "ḱ"), ("kcaron", "ǩ"),
    ("kcedilla", "ķ"), ("lacute", "ĺ"), ("lambda", "λ"), ("lcaron", "ľ"), ("lcedilla", "ļ"), ("less", "<"),
    ("lessequal", "≤"), ("logicalnot", "¬"), ("lslash", "ł"), ("macron", "¯"), ("macute", "ḿ"), ("mdotaccent", "ṁ"),
    ("minus", "−"), ("mu", "µ"), ("mu1", "µ"), ("multiply", "×"), ("nacute", "ń"), ("ncaron", "ň"), ("ncedilla", "ņ"),
    ("ndotaccent", "ṅ"), ("ngrave", "ǹ"), ("nine", "9"), ("notequal", "≠"), ("ntilde", "ñ"), ("numbersign", "#"),
    ("oacute", "ó"), ("obreve", "ŏ"), ("ocaron", "ǒ"), ("ocircumflex", "ô"), ("odieresis", "ö"), ("odotaccent", "ȯ"),
    ("oe", "œ"), ("ograve", "ò"), ("ohungarumlaut", "ő"), ("omacron", "ō"), ("omega", "ω"), ("one", "1"),
    ("onehalf", "½"), ("onequarter", "¼"), ("onesuperior", "¹"), ("oogonek", "ǫ"), ("ordfeminine", "ª"),
    ("ordmasculine", "º"), ("oslash", "ø"), ("otilde", "õ"), ("pacute", "ṕ"), ("paragraph", "¶"), ("parenleft", "("),
    ("parenright", ")"), ("partialdiff", "∂"), ("pdotaccent", "ṗ"), ("percent", "%"), ("period", "."),
    ("periodcentered", "·"), ("perthousand", "‰"), ("phi", "φ"), ("pi", "π"), ("plus", "+"), ("plusminus", "±"),
    ("product", "∏"), ("question", "?"), ("questiondown", "¿"), ("quotedbl", "\""), ("quotedblbase", "„"),
    ("quotedblleft", "“"), ("quotedblright", "”"), ("quoteleft", "‘"), ("quoteright", "’"), ("quotesinglbase", "‚"),
    ("quotesingle", "'"), ("racute", "ŕ"), ("radical", "√"), ("rcaron", "ř"), ("rcedilla", "ŗ"), ("rdotaccent", "ṙ"),
    ("registered", "®"), ("rho", "ρ"), ("sacute", "ś"), ("scaron", "š"), ("scedilla", "ş"), ("scircumflex", "ŝ"),
    ("scommaaccent", "ș"), ("sdotaccent", "ṡ"), ("section", "§"), ("semicolon", ";"), ("seven", "7"), ("sigma", "σ"),
    ("six", "6"), ("slash", "/"), ("space", " "), ("sterling", "£"), ("summation", "∑"), ("tau", "τ"),
    ("tcaron", "ť"), ("tcedilla", "ţ"), ("tcommaaccent", "ț"), ("tdieresis", "ẗ"), ("tdotaccent", "ṫ"),
    ("theta", "θ"), ("thorn", "þ"), ("three", "3"), ("threequarters", "¾"), ("threesuperior", "³"), ("tilde", "˜"),
    ("trademark", "™"), ("two", "2"), ("twosuperior", "²"), ("uacute", "ú"), ("ubreve", "ŭ"), ("ucaron", "ǔ"),
    ("ucircumflex", "û"), ("udieresis", "ü"), ("ugrave", "ù"), ("uhungarumlaut", "ű"), ("umacron", "ū"),
    ("underscore", "_"), ("uogonek", "ų"), ("uring", "ů"), ("utilde", "ũ"), ("vtilde", "ṽ"), ("wacute", "ẃ"),
    ("wcircumflex", "ŵ"), ("wdieresis", "ẅ"), ("wdotaccent", "ẇ"), ("wgrave", "ẁ"), ("wring", "ẘ"),
    ("xdieresis", "ẍ"), ("xdotaccent", "ẋ"), ("yacute", "ý"), ("ycircumflex", "ŷ"), ("ydieresis", "ÿ"),
    ("ydotaccent", "ẏ"), ("yen", "¥"), ("ygrave", "ỳ"), ("ymacron", "ȳ"), ("yring", "ẙ"), ("ytilde", "ỹ"),
    ("zacute", "ź"), ("zcaron", "ž"), ("zcircumflex", "ẑ"), ("zdotaccent", "ż"), ("zero", "0"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        assert!(GLYPHS.is_sorted_by_key(|(name, _)| *name));
        for (name, text) in [
            ("Adieresis", Some("Ä")),
            ("ffi", Some("ffi")),
            ("x", Some("x")),
            ("a.alt", Some("a")),
            ("uni20AC", Some("€")),
            ("u1F600", Some("😀")),
            ("g123", None),
            ("", None),
        ] {
            assert_eq!(glyph(name).as_deref(), text, "{name}");
        }
    }

    #[test]
    fn bytes_depend_on_the_set() {
        assert_eq!(Base::WinAnsi.character(0x80), '€');
        assert_eq!(Base::WinAnsi.character(0xe9), 'é');
        assert_eq!(Base::MacRoman.character(0x8e), 'é');
        assert_eq!(Base::Standard.character(b'\''), '’');
        assert_eq!(Base::Standard.character(b'A'), 'A');
    }
}
