import type { ComponentChildren } from 'preact';
import { number } from '../format.js';

/** The first line of a screen: its name, how many there are where that is known, and its one primary action. */
export function PageHead({
  title,
  count,
  children,
}: {
  title: string;
  count?: number | null | undefined;
  /** What can be done here, the primary action last. */
  children?: ComponentChildren;
}) {
  return (
    <div class="head">
      <div>
        <h1>{title}</h1>
        {typeof count === 'number' && <span class="muted">{number(count)}</span>}
      </div>
      {children && <div class="acts">{children}</div>}
    </div>
  );
}

/** What stands where nothing is yet: what it is for, and the next step. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <b>{title}</b>
      {children}
    </div>
  );
}
