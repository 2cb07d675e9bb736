// A front end of the exports: submit, follow, cancel, download. Nothing but the public API is asked.
"use strict";

const API = "/api/orders/export";
const LANGUAGE = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
const TEXTS = {
  zh: {
    title: "订单导出", from: "开始日期", to: "结束日期（含）", format: "格式", submit: "导出", check: "预检", cancel: "取消",
    download: "下载", empty: "还没有导出任务。", queued: "排队中", running: "运行中", succeeded: "已完成", failed: "失败",
    cancelled: "已取消", stalled: "暂无进展，会自动继续", cancelling: "正在取消…", fetch: "读取", render: "合成", upload: "上传",
    place: (n) => `前面还有 ${n - 1} 个任务`, rows: (a, b) => `${a} / ${b} 行`, speed: (n) => `${n} 行/秒`, eta: (n) => `约剩 ${n} 秒`,
    plan: (rows, size, seconds) => `约 ${rows} 行，${size} MB，${seconds} 秒`, away: "无法连接服务，正在重试…", done: (name, size) => `${name}，${size} MB`,
  },
  en: {
    title: "Order exports", from: "From", to: "To (included)", format: "Format", submit: "Export", check: "Check first", cancel: "Cancel",
    download: "Download", empty: "No exports yet.", queued: "queued", running: "running", succeeded: "done", failed: "failed",
    cancelled: "cancelled", stalled: "no progress at the moment; it goes on by itself", cancelling: "being cancelled…",
    fetch: "reading", render: "putting together", upload: "storing",
    place: (n) => `${n - 1} before this one`, rows: (a, b) => `${a} of ${b} rows`, speed: (n) => `${n} rows/s`, eta: (n) => `about ${n} s left`,
    plan: (rows, size, seconds) => `about ${rows} rows, ${size} MB, ${seconds} s`, away: "no connection; trying again…", done: (name, size) => `${name}, ${size} MB`,
  },
}[LANGUAGE];
const ENDED = ["succeeded", "failed", "cancelled"];

const form = document.getElementById("form");
const note = document.getElementById("note");
const rows = new Map();

// One requestId for one wish: kept while the same wish is repeated, so that a second click makes no second task.
let wish = { text: "", requestId: "" };
let changedAt = null;
let timer = null;
let failures = 0;

async function call(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { "Accept-Language": LANGUAGE, "Content-Type": "application/json" } });
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.detail), { status: answer.status });
  return body;
}

function say(text, bad = false) {
  note.textContent = text;
  note.classList.toggle("bad", bad);
}

function wanted() {
  return Object.fromEntries(new FormData(form));
}

async function guarded(button, act) {
  button.disabled = true;
  try {
    await act();
  } catch (error) {
    say(error.status ? error.message : TEXTS.away, true);
  } finally {
    button.disabled = false;
  }
}

async function submit() {
  const body = wanted();
  const text = JSON.stringify(body);
  if (wish.text !== text) wish = { text, requestId: identifier() };
  await call(API, { method: "POST", body: JSON.stringify({ ...body, requestId: wish.requestId }) });
  wish = { text: "", requestId: "" };
  say("");
  await look();
}

function identifier() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function check() {
  const found = await call(`${API}/validate`, { method: "POST", body: JSON.stringify(wanted()) });
  const lines = [TEXTS.plan(number(found.rows), span(found.bytes, 1e6), span(found.seconds, 1)), ...found.issues.map((issue) => issue.message)];
  say(lines.join("\n"), !found.ok);
}

// One request tells what changed of all tasks; the service says when to ask again.
async function look() {
  clearTimeout(timer);
  let pause = 5000;
  try {
    const found = await call(changedAt ? `${API}?changedSince=${encodeURIComponent(changedAt)}` : API);
    changedAt = found.changedAt;
    for (const task of found.tasks.reverse()) show(task);
    failures = 0;
    const active = [...rows.values()].filter((row) => !ENDED.includes(row.task.state));
    pause = Math.min(pause, ...active.map((row) => row.task.pollAfterMs));
    if (note.textContent === TEXTS.away) say("");
  } catch (error) {
    failures += 1;
    pause = Math.min(30000, 1000 * 2 ** failures);
    say(error.status ? error.message : TEXTS.away, true);
  }
  clearTimeout(timer);
  timer = setTimeout(look, pause);
}

function show(task) {
  const row = rows.get(task.taskId) ?? made(task.taskId);
  row.task = task;
  const { element } = row;
  element.className = task.state;
  element.dataset.state = task.state;
  part(element, ".window").textContent = `${task.from} – ${task.to} · ${task.format.toUpperCase()}`;
  part(element, ".state").textContent = TEXTS[task.state];
  const bar = part(element, "progress");
  bar.value = task.progress;
  bar.setAttribute("aria-label", `${task.progress} %`);
  part(element, ".detail").textContent = detail(task);
  part(element, ".cancel").hidden = ENDED.includes(task.state);
  part(element, ".cancel").disabled = task.cancelRequested;
  part(element, ".download").hidden = !task.downloadUrl;
}

function made(taskId) {
  const element = document.getElementById("row").content.firstElementChild.cloneNode(true);
  translate(element);
  document.getElementById("tasks").prepend(element);
  document.getElementById("empty").hidden = true;
  const cancel = part(element, ".cancel");
  cancel.addEventListener("click", () => guarded(cancel, async () => show(await call(`${API}/${taskId}/cancel`, { method: "POST" }))));
  const download = part(element, ".download");
  download.href = "#";
  download.addEventListener("click", (event) => {
    event.preventDefault();
    // The link lives for some minutes: a fresh one is taken at the click.
    guarded(download, async () => location.assign((await call(`${API}/${taskId}`)).downloadUrl));
  });
  const row = { element, task: null };
  rows.set(taskId, row);
  return row;
}

function detail(task) {
  if (task.state === "failed") return task.error;
  if (task.state === "succeeded") return `${TEXTS.rows(number(task.processed), number(task.total))} · ${TEXTS.done(task.fileName, (task.fileSize / 1e6).toFixed(1))}`;
  if (task.cancelRequested) return task.state === "cancelled" ? "" : TEXTS.cancelling;
  if (task.stalled) return TEXTS.stalled;
  if (task.state === "queued") return task.queuePosition > 1 ? TEXTS.place(task.queuePosition) : "";
  const parts = [TEXTS[task.phase] ?? ""];
  if (task.total !== null) parts.push(TEXTS.rows(number(task.processed), number(task.total)));
  if (task.rowsPerSecond) parts.push(TEXTS.speed(number(task.rowsPerSecond)));
  if (task.etaSeconds) parts.push(TEXTS.eta(task.etaSeconds));
  return parts.filter(Boolean).join(" · ");
}

function part(element, selector) {
  return element.querySelector(selector);
}

function number(value) {
  return value.toLocaleString(LANGUAGE);
}

function span({ low, high }, unit) {
  const [from, to] = [low, high].map((value) => (unit === 1 ? value : (value / unit).toFixed(1)));
  return from === to ? `${from}` : `${from}–${to}`;
}

function translate(root) {
  for (const element of root.querySelectorAll("[data-text]")) element.textContent = TEXTS[element.dataset.text];
}

document.documentElement.lang = LANGUAGE;
translate(document);
form.elements.from.value = "2026-09-01";
form.elements.to.value = "2026-09-30";
form.addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(event.submitter ?? form.querySelector(".main"), submit);
});
const checker = document.getElementById("check");
checker.addEventListener("click", () => guarded(checker, check));
look();
