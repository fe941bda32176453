"use strict";
{
  const { items, moments } = JSON.parse(document.getElementById("moments").textContent);
  const [thread, time, play, back, on, at, when] = ["thread", "time", "play", "back", "on", "at", "when"].map((id) =>
    document.getElementById(id),
  );
  const last = moments.length - 1;
  let timer = 0;

  const show = (number) => {
    at.value = number;
    const [seconds, shown] = moments[number];
    shown.forEach((item, place) => {
      if (thread.children[place]?.dataset.item === String(item)) return;
      const template = document.createElement("template");
      template.innerHTML = items[item];
      template.content.firstChild.dataset.item = item;
      thread.children[place]?.remove();
      thread.insertBefore(template.content, thread.children[place] ?? null);
    });
    while (thread.children.length > shown.length) thread.lastChild.remove();
    when.textContent = `${number + 1} of ${last + 1}, after ${seconds.toFixed(1)} s`;
    at.setAttribute("aria-valuetext", when.textContent);
  };
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
    play.textContent = "Play";
  };
  const go = (number) => {
    stop();
    show(Math.min(last, Math.max(0, number)));
  };
  const run = () => {
    const number = Number(at.value);
    if (number === last) return stop();
    // Long waits are shortened.
    const wait = Math.min(2000, 1000 * (moments[number + 1][0] - moments[number][0]));
    timer = setTimeout(() => {
      show(number + 1);
      run();
    }, wait);
  };

  if (last > 0) {
    at.max = last;
    time.hidden = false;
    at.addEventListener("input", () => go(Number(at.value)));
    back.addEventListener("click", () => go(Number(at.value) - 1));
    on.addEventListener("click", () => go(Number(at.value) + 1));
    play.addEventListener("click", () => {
      if (timer) return stop();
      if (Number(at.value) === last) show(0);
      play.textContent = "Stop";
      run();
    });
    show(last);
  }
}
