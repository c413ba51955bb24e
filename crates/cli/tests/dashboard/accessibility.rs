//! Every page of the dashboard for users of a keyboard, of a screen reader, and of a bad screen (WCAG 2.2: 1.4.3 Contrast, 2.1.1
//! Keyboard, 2.1.2 No Keyboard Trap, 2.4.7 Focus Visible, 4.1.2 Name, Role, Value), in a real browser.

#![cfg(feature = "gateway")]

use crate::devtools::Devtools;
use crate::headless::browser;
use crate::pages;
use crate::pages::log_on;
use serde_json::{Value, json};

/// Each page with a text that shows that it is complete.
const PAGES: [(&str, &str); 9] = [
    ("overview", "Temperature"),
    ("plant", "Line 1"),
    ("plant/ns%3D3%3Bs%3DLine%201%2FOven%2FTemperature", "°C"),
    ("alarms", "Running"),
    ("sources", "plc-7"),
    ("clients", "Values per second"),
    ("pubsub", "udp-of-line-3"),
    ("certificates", "Rejected certificates"),
    ("log", "plc-7"),
];

/// Functions for the checks.
const TOOLS: &str = r"
const isShown = (one) => one.checkVisibility({opacityProperty: true, visibilityProperty: true}) && one.getClientRects().length > 0;
const told = (one) => `${one.tagName.toLowerCase()}${one.id ? '#' + one.id : ''}.${one.getAttribute('class') ?? ''} ${(one.textContent || one.getAttribute('aria-label') || '').trim().slice(0, 40)}`;
";

/// Texts whose contrast with their background is below 4.5. Disabled controls are exempt.
const CONTRAST: &str = r"(() => {
const rgba = (text) => { const found = (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number); return [...found.slice(0, 3), found[3] ?? 1]; };
const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
const light = (color) => { const [r, g, b] = color.map((one) => one / 255).map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (one) => { if (!one) return [255, 255, 255, 1]; const own = rgba(getComputedStyle(one).backgroundColor); return own[3] === 1 ? own : over(own, behind(one.parentElement)); };
const opacity = (one) => one ? Number(getComputedStyle(one).opacity) * opacity(one.parentElement) : 1;
const found = [];
let count = 0;
for (const one of document.querySelectorAll('body *')) {
  const hasText = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) || one.matches('input, select');
  if (!hasText || !isShown(one) || one.closest(':disabled, .skip, noscript, option')) continue;
  count += 1;
  const style = getComputedStyle(one), back = behind(one);
  const own = rgba(one.closest('svg') ? style.fill : style.color);
  own[3] *= opacity(one);
  const [a, b] = [light(over(own, back)), light(back)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) found.push(`${ratio.toFixed(2)}: ${told(one)}`);
}
return {count, found};
})()";

/// Visible elements that react to clicks but cannot have the focus. A tree handles keys for its items. Needs the command line API of the
/// console.
const ONLY_CLICKABLE: &str = r"(() => {
const native = 'a[href], button, input, select, textarea, summary, [tabindex]';
return [...document.querySelectorAll('body *')].filter((one) => isShown(one) && (getEventListeners(one).click ?? []).length > 0)
  .filter((one) => !one.closest(native) && !one.matches('form, dialog') && !(one.closest('[role=tree]') && getEventListeners(one.closest('[role=tree]')).keydown))
  .map(told);
})()";

/// Numbers all visible controls that Tab must reach, and returns them.
const CONTROLS: &str = r"(() => {
const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
  .filter((one) => !one.disabled && isShown(one) && one.tabIndex >= 0);
all.forEach((one, at) => one.dataset.control = at);
return all.map(told);
})()";

/// The number of the focused control (-1 for a new one, null for none), its description, and whether the focus can be seen.
const FOCUSED: &str = r"(() => {
const one = document.activeElement;
if (!one || one === document.body) return null;
const isOutlined = (one) => { const style = getComputedStyle(one); return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2; };
return [Number(one.dataset.control ?? -1), told(one), isOutlined(one) || [...one.children].some(isOutlined)];
})()";

impl Page<'_> {
    fn check(&mut self, script: &str) -> Value {
        let expression = format!("(() => {{ {TOOLS} return {script}; }})()");
        let asked = json!({"expression": expression, "returnByValue": true, "includeCommandLineAPI": true});
        let answer = self.0.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// Controls without a name in the browser's accessibility tree, and the number of controls.
    fn nameless(&mut self) -> (Vec<String>, usize) {
        const ROLES: [&str; 13] = [
            "button",
            "link",
            "textbox",
            "searchbox",
            "combobox",
            "listbox",
            "checkbox",
            "radio",
            "switch",
            "slider",
            "spinbutton",
            "treeitem",
            "tree",
        ];
        let tree = self.0.call("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().unwrap().iter();
        let is_control = |node: &&Value| {
            node["ignored"] != json!(true)
                && ROLES.contains(&node["role"]["value"].as_str().unwrap_or_default())
        };
        let controls: Vec<&Value> = nodes.filter(is_control).collect();
        let named = |node: &Value| !node["name"]["value"].as_str().unwrap_or_default().trim().is_empty();
        let nameless = controls.iter().filter(|node| !named(node)).map(|node| node["role"].to_string());
        (nameless.collect(), controls.len())
    }

    fn press_tab(&mut self) {
        for kind in ["keyDown", "keyUp"] {
            let key = json!({"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9});
            self.0.call("Input.dispatchKeyEvent", key);
        }
    }

    /// Presses Tab until the page has no focus any more. Every control must have had it, and shown it.
    fn walk(&mut self, name: &str) {
        self.0.evaluate("document.activeElement?.blur(); scrollTo(0, 0)");
        let controls = self.check(CONTROLS);
        let controls = controls.as_array().unwrap();
        let mut missing: Vec<bool> = vec![true; controls.len()];
        let mut is_trapped = true;
        for _ in 0..controls.len() * 2 + 20 {
            self.press_tab();
            let focused = self.check(FOCUSED);
            if focused.is_null() {
                is_trapped = false;
                break;
            }
            assert_eq!(focused[2], json!(true), "{name}: the focus cannot be seen on {}", focused[1]);
            if let Some(seen) = focused[0].as_u64().and_then(|at| missing.get_mut(at as usize)) {
                *seen = false;
            }
        }
        assert!(!is_trapped, "{name}: Tab does not leave the page");
        // A table that was drawn again in the meantime has new controls; what it replaced is gone.
        let gone = self.check(
            "[...document.querySelectorAll('[data-control]')].map((one) => Number(one.dataset.control))",
        );
        let missed: Vec<&Value> = controls
            .iter()
            .zip(missing)
            .enumerate()
            .filter(|(at, (_, is_missing))| *is_missing && gone.as_array().unwrap().contains(&json!(at)))
            .map(|(_, (control, _))| control)
            .collect();
        assert!(missed.is_empty(), "{name}: Tab does not reach {missed:?}");
    }
}

struct Page<'a>(&'a mut Devtools);

#[test]
fn every_page_can_be_read_and_used_with_a_keyboard() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = pages::everything(folder.path());
    let mut devtools = Devtools::start(&browser, folder.path());
    devtools.open(&url, 1_280);
    log_on(&mut devtools);
    for (part, shown) in PAGES {
        for (scheme, width) in [("light", 1_280), ("dark", 1_280), ("light", 390), ("dark", 390)] {
            let name = format!("{part}, {scheme}, {width} pixels");
            let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            devtools.call("Emulation.setEmulatedMedia", features);
            devtools.open(&format!("{url}#{part}"), width);
            let text = json!(shown);
            devtools
                .wait_for(&format!("document.getElementById('main')?.textContent.includes({text}) === true"));
            devtools.wait_for("document.getElementById('state').textContent === 'Running'");
            let mut page = Page(&mut devtools);
            let contrast = page.check(CONTRAST);
            assert!(contrast["count"].as_u64().unwrap() > 10, "{name}: {contrast}");
            assert_eq!(contrast["found"], json!([]), "{name}");
            let (nameless, controls) = page.nameless();
            assert!(
                nameless.is_empty() && controls > 5,
                "{name}: {controls} controls, without name: {nameless:?}"
            );
            assert_eq!(page.check(ONLY_CLICKABLE), json!([]), "{name}: no keyboard reaches these");
            page.walk(&name);
        }
    }
    // The dialog keeps the focus within itself, and Escape closes it.
    devtools.open(&url, 1_280);
    devtools.wait_for("document.getElementById('logbutton')?.textContent === 'Log off'");
    devtools.evaluate("document.getElementById('logbutton').click()");
    devtools.wait_for("document.getElementById('logbutton').textContent === 'Log on'");
    devtools.evaluate("document.getElementById('logbutton').click()");
    devtools.wait_for("document.getElementById('login').open");
    let mut page = Page(&mut devtools);
    assert_eq!(page.check(CONTRAST)["found"], json!([]), "the dialog");
    let (nameless, _) = page.nameless();
    assert!(nameless.is_empty(), "{nameless:?}");
    for _ in 0..8 {
        page.press_tab();
        let inside =
            "(one => one === document.body || one.closest('#login') !== null)(document.activeElement)";
        assert_eq!(page.check(inside), json!(true), "the focus leaves the dialog");
    }
    for kind in ["keyDown", "keyUp"] {
        let key = json!({"type": kind, "key": "Escape", "code": "Escape", "windowsVirtualKeyCode": 27});
        page.0.call("Input.dispatchKeyEvent", key);
    }
    page.0.wait_for("!document.getElementById('login').open");
}
