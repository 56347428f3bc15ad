import { moment } from '../../format.js';
import { OF_SERVER, type ShownFields } from './use-record.js';

/** A document that changed while it was being edited: both versions, field by field. */
export function Conflict({
  stored,
  theirs,
  mine,
  busy,
  onKeep,
  onTake,
}: {
  /** As it was when editing began. */
  stored: ShownFields;
  theirs: ShownFields;
  mine: Readonly<Record<string, unknown>>;
  busy: boolean;
  onKeep: () => void;
  onTake: () => void;
}) {
  const names = [...new Set([...Object.keys(stored), ...Object.keys(theirs), ...Object.keys(mine)])];
  const rows = names
    .filter((name) => !OF_SERVER.has(name))
    .map((name) => ({
      name,
      before: write(stored[name]),
      theirs: write(theirs[name]),
      mine: Object.hasOwn(mine, name) ? write(mine[name] ?? undefined) : null,
    }))
    .filter((row) => row.mine !== null || row.theirs !== row.before);
  return (
    <section class="conflict" role="alert" aria-label="Changed meanwhile">
      <p>
        <b>Someone else changed this document</b> {moment(theirs.updatedAt)}, while you were editing it.
        {theirs.isDeleted === true && ' It is in the trash now.'} Nothing of yours is stored yet.
      </p>
      <div class="scroll" role="region" aria-label="Both versions" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">As you opened it</th>
              <th scope="col">Stored now</th>
              <th scope="col">Yours</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, before, theirs: now, mine: own }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{before}</td>
                <td>{now === before ? <span class="muted">the same</span> : <b>{now}</b>}</td>
                <td>{own === null ? <span class="muted">not changed</span> : <b>{own}</b>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="row">
        {theirs.isDeleted !== true && (
          <button class="danger" disabled={busy} onClick={onKeep}>
            Store mine over it
          </button>
        )}
        <button onClick={onTake}>Discard my changes</button>
      </p>
    </section>
  );
}

const MOST = 300;

function write(value: unknown): string {
  if (value === undefined) return '–';
  const text = JSON.stringify(value);
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text;
}
