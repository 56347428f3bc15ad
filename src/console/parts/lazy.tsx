import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { renewPage } from '../stale-page.js';

/** A component whose code is loaded when it is first shown. */
export function lazy(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | null = null;
  return function Lazy() {
    const [, setReady] = useState(loaded !== null);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (component) => {
          loaded = component;
          setReady(true);
        },
        () => {
          setFailed(true);
          // A newer server has other parts.
          void renewPage();
        },
      );
    }, []);
    const View = loaded;
    if (View) return <View />;
    return failed ? (
      <p class="trouble" role="alert">
        This part could not be loaded. The server may be away: load the page again when it is back.
      </p>
    ) : (
      <p class="empty">Loading…</p>
    );
  };
}
