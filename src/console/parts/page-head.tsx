import { Fragment, type ComponentChildren } from 'preact';
import { number, bytes } from '../format.js';

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

/** Links to the views of a screen or drawer. */
export function Tabs({
  label,
  current,
  tabs,
}: {
  label: string;
  /** Name of the view that is shown. */
  current: string;
  tabs: readonly (readonly [name: string, text: string, link: string])[];
}) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([name, text, link]) => (
        <a key={name} href={link} aria-current={name === current ? 'page' : undefined}>
          {text}
        </a>
      ))}
    </nav>
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

const NEARLY = 0.8;

/** How much of a limit is used; null = there is none. */
export function Usage({
  name,
  used,
  limit,
  isCount = false,
}: {
  name: string;
  used: number;
  limit: number | null;
  /** A count, where others are bytes. */
  isCount?: boolean;
}) {
  const show = (value: number): string => (isCount ? number(value) : bytes(value));
  const share = limit === null ? 0 : limit === 0 ? 1 : used / limit;
  return (
    <label class="usage">
      <span>
        {name}: {show(used)}
        {limit === null ? ', no limit' : ` of ${show(limit)}`}
      </span>
      {limit !== null && (
        <meter class={share > NEARLY ? 'bad' : ''} min={0} max={1} value={Math.min(1, share)}>
          {Math.round(share * 100)} %
        </meter>
      )}
    </label>
  );
}
