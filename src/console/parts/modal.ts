import { useLayoutEffect, useRef } from 'preact/hooks';

const TYPED = 'label input:not([type=checkbox], [type=file], [readonly]), label textarea';

/** Opens a dialog of the browser's own when it is drawn: it keeps the focus and gives it back, and Esc closes it. */
export function useModal() {
  const ref = useRef<HTMLDialogElement>(null);
  // Before anybody can see it or press a key: one that is shown a moment later misses an Esc of that moment.
  useLayoutEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    ref.current?.showModal();
    // What is to be typed, rather than the button that closes.
    ref.current?.querySelector<HTMLElement>(TYPED)?.focus();
    return () => {
      if (opener?.isConnected) opener.focus();
    };
  }, []);
  return ref;
}
