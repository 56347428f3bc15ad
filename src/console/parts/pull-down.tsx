import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';

/** A button that opens a sheet below it: Esc, a press elsewhere and leaving it by Tab close it again. */
export function PullDown({
  label,
  onOpen,
  children,
}: {
  label: string;
  onOpen?: () => void;
  children: ComponentChildren;
}) {
  const ref = useRef<HTMLDetailsElement>(null);
  const close = (): void => {
    if (ref.current) ref.current.open = false;
  };
  return (
    <details
      ref={ref}
      class="pull-down"
      onFocusOut={(event) => {
        // Nothing is focused next where a press was beside everything, or a button of the sheet has gone.
        if (event.relatedTarget && !ref.current?.contains(event.relatedTarget as Node)) close();
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !ref.current?.open) return;
        event.preventDefault();
        close();
        ref.current.querySelector('summary')?.focus();
      }}
      onToggle={(event) => {
        if (!event.currentTarget.open) return;
        onOpen?.();
        const outside = (press: PointerEvent): void => {
          if (ref.current?.contains(press.target as Node)) return;
          removeEventListener('pointerdown', outside);
          close();
        };
        addEventListener('pointerdown', outside);
      }}
    >
      <summary class="button">{label}</summary>
      <div class="sheet">{children}</div>
    </details>
  );
}
