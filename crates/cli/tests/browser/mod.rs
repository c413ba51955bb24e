//! A page in a real browser, wide and narrow: nothing overflows, and every chart shows something.

mod headless;
mod png;

pub(crate) use headless::browser;

use headless::run;
use png::Picture;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Height of the checked part of a page, in pixels.
const HEIGHT: u32 = 4_000;

/// Width and height of the window.
const SIZE: (u32, u32) = (1_200, HEIGHT);

/// Minimum number of colours of a page with content, because letters have edges.
const COLOURS_MIN: usize = 20;

/// Minimum number of coloured pixels of a thin curve in a chart.
const DRAWN_MIN: usize = 150;

/// A figure as laid out by the browser.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) title: String,
    /// Number of elements of each class in its chart.
    marks: Value,
    left: u32,
    top: u32,
    width: u32,
    height: u32,
}

impl Figure {
    /// Number of elements of a class in its chart.
    pub(crate) fn marks(&self, class: &str) -> u64 {
        self.marks[class].as_u64().unwrap_or(0)
    }
}

/// Checks a page, and returns its figures.
pub(crate) fn look_at(browser: &Path, html: &str, folder: &Path) -> Vec<Figure> {
    let [wide, phone] = [1_200, 390].map(|width| lay_out(browser, html, folder, width));
    for laid in [&wide, &phone] {
        assert_eq!(laid.problems, Vec::<String>::new());
    }
    assert_eq!(wide.figures.len(), phone.figures.len());
    let (page, printed) = (folder.join("page.html"), folder.join("printed.pdf"));
    fs::write(&page, html).unwrap();
    run(
        browser,
        &["--no-pdf-header-footer", &format!("--print-to-pdf={}", printed.display())],
        SIZE,
        &of_file(&page),
        folder,
    );
    let bytes = fs::read(&printed).unwrap();
    assert!(bytes.starts_with(b"%PDF") && bytes.len() > 10_000, "{} bytes", bytes.len());
    phone.figures
}

/// A page at some width.
#[derive(Debug)]
pub(crate) struct Laid {
    figures: Vec<Figure>,
    /// Faults, as text.
    pub(crate) problems: Vec<String>,
}

/// Lays a page out at some width.
pub(crate) fn lay_out(browser: &Path, html: &str, folder: &Path, width: u32) -> Laid {
    let (page, picture) = (folder.join("framed.html"), folder.join(format!("{width}.png")));
    fs::write(&page, framed(html, width)).unwrap();
    let taken = format!("--screenshot={}", picture.display());
    let dumped = run(browser, &["--dump-dom", &taken], SIZE, &of_file(&page), folder);
    let found =
        dumped.split_once("<pre id=\"found\" hidden=\"\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let found: Value =
        found.and_then(|(found, _)| serde_json::from_str(found).ok()).expect("the script has run");
    assert_eq!(found["width"], width, "the page is not as wide as asked for");
    let picture = Picture::read(&fs::read(&picture).unwrap());
    assert_eq!((picture.width, picture.height), (1_200, HEIGHT));
    let figures = found["figures"].as_array().unwrap().iter().map(|one| {
        let number = |name: &str| one[name].as_f64().unwrap().max(0.0) as u32;
        Figure {
            title: one["title"].as_str().unwrap().to_owned(),
            marks: one["marks"].clone(),
            left: number("left"),
            top: number("top"),
            width: number("width"),
            height: number("height"),
        }
    });
    let figures: Vec<Figure> = figures.collect();
    let mut problems = Vec::new();
    if found["scroll"].as_u64().unwrap() > u64::from(width) {
        problems.push(format!("{width}: {} pixels wide", found["scroll"]));
    }
    let outside = found["outside"].as_array().unwrap().iter();
    problems.extend(outside.map(|one| format!("{width}: sticks out: {one}")));
    let colours = picture.colours(COLOURS_MIN);
    if colours < COLOURS_MIN {
        problems.push(format!("{width}: only {colours} colours can be seen"));
    }
    for one in &figures {
        if one.width < 250 || one.height < 150 {
            problems.push(format!("{width}: too small to be read: {one:?}"));
        }
        let drawn = picture.coloured(one.left, one.top, one.width, one.height);
        if one.top + one.height < HEIGHT && drawn < DRAWN_MIN {
            problems.push(format!("{width}: {} has {drawn} coloured pixels", one.title));
        }
    }
    Laid { figures, problems }
}

/// The page in a frame of some width, because browser windows cannot be as narrow as a phone, and a script that writes
/// the layout to the document. The page itself has no script.
fn framed(html: &str, width: u32) -> String {
    let escaped = html.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        r#"<!doctype html><html><body style="margin:0;background:#fff">
<iframe id="frame" style="display:block;border:0;width:{width}px;height:{HEIGHT}px" srcdoc="{escaped}"></iframe>
<pre id="found" hidden></pre>
<script>
addEventListener("load", () => {{
  const page = document.getElementById("frame").contentDocument, root = page.documentElement;
  const box = (one) => one.getBoundingClientRect();
  const plain = (text) => text.replace(/[&<>"\\]/g, " ");
  const outside = [...page.querySelectorAll("body *")]
    .filter((one) => !one.closest(".scroll > *, svg *") && box(one).right > root.clientWidth + 1)
    .map((one) => plain(one.tagName + " " + one.textContent.slice(0, 60)));
  const figures = [...page.querySelectorAll("figure")].map((figure) => {{
    const chart = figure.querySelector("figure > svg"), marks = {{}};
    for (const name of ["line", "dot", "bar", "band", "box", "part"])
      marks[name] = [...chart.querySelectorAll("." + name)].filter((one) => box(one).width + box(one).height > 1).length;
    const {{left, top, width, height}} = box(chart);
    return {{title: plain(figure.querySelector("h3").textContent), marks, left, top, width, height}};
  }});
  document.getElementById("found").textContent =
    JSON.stringify({{width: root.clientWidth, scroll: root.scrollWidth, outside, figures}});
}});
</script></body></html>"#
    )
}

fn of_file(page: &Path) -> String {
    format!("file://{}", page.display())
}
