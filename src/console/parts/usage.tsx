import { bytes, number } from '../format.js';

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
