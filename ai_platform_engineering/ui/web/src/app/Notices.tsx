// Notifications about runs that are not in view.

import { CrossIcon } from "../icons";
import type { Notice, Store } from "../store";
import { TEXTS } from "../texts";

export function Notices({ store }: { store: Store }) {
  return (
    <section class="notices" aria-label={TEXTS.notices.region} aria-live="polite">
      {store.notices.value.map((notice) => (
        <NoticeCard key={notice.id} store={store} notice={notice} />
      ))}
    </section>
  );
}

function NoticeCard({ store, notice }: { store: Store; notice: Notice }) {
  const open = () => {
    store.dismiss(notice);
    store.go({ view: "chat", conversation: notice.conversation });
  };
  return (
    <div class="card notice">
      <div>
        <strong>{TEXTS.notices[notice.kind]}</strong>
        <p class="notice-text">{notice.text}</p>
      </div>
      {notice.conversation && (
        <button type="button" class="button small" onClick={open}>{TEXTS.notices.open}</button>
      )}
      <button
        type="button"
        class="button plain small"
        aria-label={TEXTS.notices.dismiss}
        onClick={() => store.dismiss(notice)}
      >
        <CrossIcon />
      </button>
    </div>
  );
}
