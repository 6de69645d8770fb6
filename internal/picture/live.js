// Replaces the parts of a page that the server says have changed, and says whether the page is live.
'use strict';

const live = document.getElementById('live');

function replace(part) {
  const old = document.getElementById(part.id);
  if (!old) return;
  const focused = old.contains(document.activeElement) ? document.activeElement.id : '';
  const open = old.querySelector('details')?.open;
  const scrolled = old.querySelector('.scrolls')?.scrollLeft;
  const made = document.createElement('template');
  made.innerHTML = part.html;
  if (open) made.content.querySelector('details')?.setAttribute('open', '');
  old.replaceWith(made.content);
  const scrolls = document.querySelector(`#${CSS.escape(part.id)} .scrolls`); // none once the last worker is gone
  if (scrolled && scrolls) scrolls.scrollLeft = scrolled;
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

function say(text) {
  if (live.textContent !== text) live.textContent = text;
}

function connect(path) {
  const events = new EventSource(path);
  events.onopen = () => say('live');
  events.onmessage = (event) => {
    if (document.getElementById('unread')) location.reload(); // it has no parts to replace
    JSON.parse(event.data).forEach(replace);
    say('live');
  };
  events.addEventListener('unread', (event) => say(`not live: ${JSON.parse(event.data)}`));
  events.onerror = () => {
    if (events.readyState !== EventSource.CLOSED) return; // the browser connects again at once
    say('not live: the server does not answer, or you may not see this any more; trying again');
    setTimeout(connect, 5000, path.split('?')[0]);
  };
}

connect(document.getElementById('events').dataset.path);
