//! `cargo xtask docs`: checks the links of all pages and builds them as a book with mdBook.
//!
//! The pages are the Markdown files in `docs/`; `docs/SUMMARY.md` is the table of contents. `--check` only checks:
//! every relative link must refer to an existing file, every `#anchor` to a heading, every page must be in the table of
//! contents, every Rust example in a doctest, and every TOML example valid and on lines of its own.

use crate::Failure;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Version of mdBook to install if there is none. It runs as a separate program.
const MDBOOK: &str = "0.5.4";
/// Target of links that leave the book.
const REPOSITORY: &str = "https://github.com/taktwerk/taktwerk/blob/main";
const CONTENTS: &str = "docs/SUMMARY.md";

/// A Markdown file: its links and anchors.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    /// Byte offset of the link, and its destination.
    links: Vec<(usize, String)>,
    anchors: BTreeSet<String>,
}

/// Checks the pages and, unless `check_only`, builds the book in `target/book`.
pub(crate) fn run(root: &Path, check_only: bool) -> Result<(), Failure> {
    let texts = markdown_files(root)?;
    let mut findings = check(root, &texts);
    findings.extend(untested(&texts, &crate_roots(root)?));
    findings.extend(broken_toml(&texts));
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        return Err(format!("docs: {} broken links, pages or examples", findings.len()));
    }
    println!("docs: all links of {} pages are valid", texts.len());
    if check_only { Ok(()) } else { build(root, &texts) }
}

/// All tracked Markdown files by path, except those among fuzzing seeds.
fn markdown_files(root: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let output = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard", "*.md"])
        .current_dir(root)
        .output();
    let output = output.map_err(|error| format!("cannot start git: {error}"))?;
    let mut texts = BTreeMap::new();
    for path in String::from_utf8_lossy(&output.stdout).lines().filter(|path| !path.starts_with("fuzz/")) {
        if let Ok(text) = std::fs::read_to_string(root.join(path)) {
            texts.insert(path.to_owned(), text);
        }
    }
    Ok(texts)
}

fn check(root: &Path, texts: &BTreeMap<String, String>) -> Vec<String> {
    let pages: BTreeMap<&str, Page> = texts.iter().map(|(path, text)| (path.as_str(), parse(text))).collect();
    let mut findings = Vec::new();
    for (path, page) in &pages {
        for (offset, link) in &page.links {
            if let Err(reason) = follow(root, &pages, path, link) {
                let line = texts.get(*path).map_or(0, |text| text[..*offset].matches('\n').count() + 1);
                findings.push(format!("{path}:{line}: {link}: {reason}"));
            }
        }
    }
    let listed: BTreeSet<String> = pages.get(CONTENTS).map_or_else(BTreeSet::new, |contents| {
        contents.links.iter().filter_map(|(_, link)| resolve(CONTENTS, link)).collect()
    });
    for path in pages.keys().filter(|path| path.starts_with("docs/") && **path != CONTENTS) {
        if !listed.contains(*path) {
            findings.push(format!("{path}: the page is missing in {CONTENTS}"));
        }
    }
    findings
}

/// Examples that no test compiles: in pages that no crate includes, or marked with `ignore`.
fn untested(texts: &BTreeMap<String, String>, sources: &[String]) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in texts {
        let is_included = || sources.iter().any(|source| source.contains(&format!("../{path}\")")));
        for (number, line) in (1..).zip(text.lines()) {
            if line.starts_with("```rust") && line.contains("ignore") {
                findings.push(format!(
                    "{path}:{number}: the example is not compiled: use no_run instead of ignore"
                ));
            } else if line.starts_with("```rust") && !is_included() {
                let problem = "no test compiles the example: include the page for doctests, as in crates/taktwerk/src/lib.rs";
                findings.push(format!("{path}:{number}: {problem}"));
            }
        }
    }
    findings
}

/// Examples in TOML that cannot be copied: code marked as `toml` that is invalid, and indented code with a table and its
/// settings in one line.
fn broken_toml(texts: &BTreeMap<String, String>) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in texts {
        // Of the current code block: whether it is marked as TOML, the line of its first text, and its text.
        let mut block: Option<(bool, usize, String)> = None;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(kind)) => {
                    let is_toml = matches!(&kind, CodeBlockKind::Fenced(name) if name.as_ref() == "toml");
                    block = Some((is_toml, 0, String::new()));
                }
                Event::Text(piece) => {
                    if let Some((_, line, code)) = &mut block {
                        if code.is_empty() {
                            *line = text[..range.start].matches('\n').count() + 1;
                        }
                        code.push_str(&piece);
                    }
                }
                Event::End(TagEnd::CodeBlock) => {
                    let Some((is_toml, line, code)) = block.take() else { continue };
                    if let Some(joined) = code.lines().position(is_joined) {
                        let line = line + joined;
                        findings.push(format!("{path}:{line}: a table and its settings are in one line"));
                    } else if is_toml && let Err(error) = code.parse::<toml::Table>() {
                        findings.push(format!("{path}:{line}: the example is not TOML: {}", error.message()));
                    }
                }
                _ => {}
            }
        }
    }
    findings
}

/// Whether a line has settings behind the heading of a table, which must be on lines of their own.
fn is_joined(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix("[[").and_then(|rest| rest.split_once("]]"));
    rest.is_some_and(|(_, rest)| rest.split('#').next().unwrap_or_default().contains('='))
}

/// The roots of the crates, which include pages for doctests.
fn crate_roots(root: &Path) -> Result<Vec<String>, Failure> {
    let folder = root.join("crates");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let roots =
        entries.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("src/lib.rs")).ok());
    Ok(roots.collect())
}

fn parse(text: &str) -> Page {
    let mut page = Page::default();
    let mut heading: Option<String> = None;
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push((range.start, dest_url.into_string()));
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                if let Some(title) = heading.take() {
                    let slug = slug(&title);
                    let mut unique = slug.clone();
                    let mut number = 0;
                    while !page.anchors.insert(unique.clone()) {
                        number += 1;
                        unique = format!("{slug}-{number}");
                    }
                }
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(title) = &mut heading {
                    title.push_str(&words);
                }
            }
            _ => {}
        }
    }
    page
}

/// The anchor of a heading, as created by mdBook and code hosts.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for letter in title.trim().chars() {
        if letter.is_alphanumeric() || letter == '_' || letter == '-' {
            slug.extend(letter.to_lowercase());
        } else if letter.is_whitespace() {
            slug.push('-');
        }
    }
    slug
}

fn is_external(link: &str) -> bool {
    link.contains("://") || link.starts_with("mailto:")
}

/// The path from the repository root for a relative link in `page`, without its anchor.
fn resolve(page: &str, link: &str) -> Option<String> {
    if is_external(link) {
        return None;
    }
    let target = link.split('#').next().unwrap_or_default();
    if target.is_empty() {
        return Some(page.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for component in Path::new(target).components() {
        match component {
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

fn follow(root: &Path, pages: &BTreeMap<&str, Page>, path: &str, link: &str) -> Result<(), &'static str> {
    if is_external(link) {
        return Ok(());
    }
    let target = resolve(path, link).ok_or("the link leaves the repository")?;
    if !root.join(&target).exists() && !pages.contains_key(target.as_str()) {
        return Err("there is no such file");
    }
    let Some((_, anchor)) = link.split_once('#') else { return Ok(()) };
    match pages.get(target.as_str()) {
        Some(page) if !page.anchors.contains(anchor) => Err("there is no such heading"),
        _ => Ok(()),
    }
}

/// Copies the pages to `target/book-pages`, redirects links that leave the book to the repository, and runs mdBook.
fn build(root: &Path, texts: &BTreeMap<String, String>) -> Result<(), Failure> {
    let pages = root.join("target/book-pages");
    let book = root.join("target/book");
    let failed = |error: std::io::Error| format!("the book cannot be written: {error}");
    if pages.exists() {
        std::fs::remove_dir_all(&pages).map_err(failed)?;
    }
    std::fs::create_dir_all(&pages).map_err(failed)?;
    std::fs::copy(root.join("docs/book.toml"), pages.join("book.toml")).map_err(failed)?;
    for (path, text) in texts {
        let Some(inside) = path.strip_prefix("docs/") else { continue };
        let to = pages.join(inside);
        if let Some(directory) = to.parent() {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        std::fs::write(to, leading_outside(path, text)).map_err(failed)?;
    }
    let mdbook = mdbook(root)?;
    let status = Command::new(&mdbook).arg("build").arg(&pages).arg("--dest-dir").arg(&book).status();
    match status {
        Ok(status) if status.success() => {
            println!("docs: open {}", book.join("index.html").display());
            Ok(())
        }
        Ok(status) => Err(format!("mdbook: {status}")),
        Err(error) => Err(format!("{} does not start: {error}", mdbook.display())),
    }
}

/// A page with links that leave `docs/` redirected to the repository.
fn leading_outside(path: &str, text: &str) -> String {
    let mut result = text.to_owned();
    for (_, link) in parse(text).links {
        if let Some(target) = resolve(path, &link)
            && !target.starts_with("docs/")
        {
            let anchor = link.split_once('#').map_or_else(String::new, |(_, anchor)| format!("#{anchor}"));
            result = result.replace(&format!("]({link})"), &format!("]({REPOSITORY}/{target}{anchor})"));
        }
    }
    result
}

/// The mdBook program: from the search path, or installed in `target/tools`.
fn mdbook(root: &Path) -> Result<PathBuf, Failure> {
    if Command::new("mdbook").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok("mdbook".into());
    }
    let tools = root.join("target/tools");
    let program = tools.join("bin/mdbook");
    if !program.exists() {
        println!("docs: installing mdbook {MDBOOK} in {}", tools.display());
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["install", "mdbook", "--version", MDBOOK, "--locked", "--no-default-features"]);
        cargo.args(["--features", "search", "--root"]).arg(&tools);
        let status = cargo.status().map_err(|error| format!("cannot start cargo: {error}"))?;
        if !status.success() {
            return Err(format!("mdbook {MDBOOK} cannot be installed: {status}"));
        }
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let texts = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        check(Path::new("/nonexistent"), &texts)
    }

    #[test]
    fn links_and_anchors_that_exist_pass() {
        let contents = ("docs/SUMMARY.md", "- [A](a.md)\n- [B](deep/b.md)");
        let a = (
            "docs/a.md",
            "# One `two` three\n[b](deep/b.md#b) [self](#one-two-three) [web](https://example.org/x)",
        );
        assert_eq!(findings(&[contents, a, ("docs/deep/b.md", "# B\n[a](../a.md)")]), Vec::<String>::new());
    }

    #[test]
    fn broken_links_are_found_with_their_line() {
        let contents = ("docs/SUMMARY.md", "- [A](a.md)");
        let a = (
            "docs/a.md",
            "# A\n\n[gone](gone.md)\n[anchor](#nothing)\n[out](../../x.md)\n`[code](is-no-link.md)`",
        );
        assert_eq!(
            findings(&[contents, a]),
            [
                "docs/a.md:3: gone.md: there is no such file",
                "docs/a.md:4: #nothing: there is no such heading",
                "docs/a.md:5: ../../x.md: the link leaves the repository",
            ]
        );
    }

    #[test]
    fn pages_outside_the_contents_are_found() {
        let files = [("docs/SUMMARY.md", "- [A](a.md)"), ("docs/a.md", "# A"), ("docs/lost.md", "# L")];
        assert_eq!(findings(&files), ["docs/lost.md: the page is missing in docs/SUMMARY.md"]);
    }

    #[test]
    fn examples_that_no_test_compiles_are_found() {
        let texts = [
            ("docs/a.md", "# A\n```rust,ignore\n```\n```rust,no_run\n```"),
            ("docs/b.md", "```toml\n```\n```rust\n```"),
        ];
        let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let sources = ["#[doc = include_str!(\"../../../docs/a.md\")]".to_owned()];
        let findings = untested(&texts, &sources);
        let places: Vec<&str> = findings.iter().filter_map(|finding| finding.split(": ").next()).collect();
        assert_eq!(places, ["docs/a.md:2", "docs/b.md:3"]);
    }

    #[test]
    fn toml_that_cannot_be_copied_is_found() {
        let texts = [
            (
                "docs/a.md",
                "# A\n\n    [[fault]] at = \"5s\" kind = \"cut\"\n\n    [[fault]]   # a = b\n    at = 5\n",
            ),
            ("docs/b.md", "```toml\na = 1\n```\n\n```toml\n[b]\nc =\n```\n```sh\na =\n```\n"),
        ];
        let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let findings = broken_toml(&texts);
        let places: Vec<&str> = findings.iter().filter_map(|finding| finding.split(": ").next()).collect();
        assert_eq!(places, ["docs/a.md:3", "docs/b.md:6"]);
    }

    #[test]
    fn equal_headings_get_numbers() {
        let page = parse("# Same\n## Same\n### What is `x-y`?");
        assert!(["same", "same-1", "what-is-x-y"].iter().all(|anchor| page.anchors.contains(*anchor)));
    }

    #[test]
    fn links_that_leave_the_book_are_redirected_to_the_repository() {
        let text = "[a](../ARCHITECTURE.md#the-map) [b](b.md)";
        let expected = format!("[a]({REPOSITORY}/ARCHITECTURE.md#the-map) [b](b.md)");
        assert_eq!(leading_outside("docs/a.md", text), expected);
    }
}
