import { Fragment, type ComponentChildren } from 'preact';
import { number } from '../format.js';

/** The first line of a screen: its name, how many there are where that is known, and its one primary action. */
export function PageHead({
  title,
  count,
  isSection = false,
  children,
}: {
  title: string;
  /** One of several lists of a screen. */
  isSection?: boolean;
  count?: number | null | undefined;
  /** What can be done here, the primary action last. */
  children?: ComponentChildren;
}) {
  return (
    <div class="head">
      <div>
        {isSection ? <h2>{title}</h2> : <h1>{title}</h1>}
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

/** Names and their values; those without a value are left out. */
export function Pairs({ of }: { of: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="pairs">
      {Object.entries(of).map(
        ([name, value]) =>
          value !== null &&
          value !== undefined &&
          value !== false && (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </Fragment>
          ),
      )}
    </dl>
  );
}
