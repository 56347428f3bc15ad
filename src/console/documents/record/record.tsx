import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { call, prepare, type Prepared } from '../../api.js';
import { below, withQuery } from '../../api-paths.js';
import { type DocumentsPath, TRASHED_TOO } from '../../collection.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { say, showError, ErrorNote } from '../../parts/basics.js';
import { Commands } from '../../parts/commands.js';
import { Confirm } from '../../parts/confirm.js';
import { Drawer } from '../../parts/drawer.js';
import { loadEditor } from '../../parts/json-editor.js';
import { Tabs } from '../../parts/page-head.js';
import { Table } from '../../parts/table.js';
import { linkHere, place } from '../../routes.js';
import { mayChange } from '../../session.js';
import {
  OF_SERVER,
  type EditedRecord,
  type RecordPlace,
  type ShownFields,
  useRecord,
  writeValue,
} from './use-record.js';
import { RECORD_TABS } from './record-tabs.js';

interface Props extends RecordPlace {
  /** `new` for one that is not stored yet. */
  id: string;
  onClose: () => void;
  onChange: () => void;
}

/** One document beside the list, at an address of its own. */
export function RecordDrawer({ id, onClose, onChange, ...rest }: Props) {
  const isNew = id === 'new';
  const { base, collection } = rest;
  // A copy begins as the document that it is of.
  const source = isNew ? place.value.query.get('from') : id;
  const { data, error, reload } = useLoad(
    source === null ? null : withQuery(below(base, '/{document}', { document: source }), TRASHED_TOO),
  );
  const title = isNew ? `New document of ${collection.name}` : `${collection.name} ${id}`;
  // Beside the document, not behind it.
  useEffect(() => void (place.value.query.get('tab') === 'json' && loadEditor()), []);
  // One drawer from the beginning: another one in its place would not know where the focus came from.
  const [isDirty, setDirty] = useState(false);
  const forget = useRef<() => void>(() => undefined);
  const leave = (): void => {
    forget.current();
    onClose();
  };
  return (
    <Drawer title={title} onClose={leave} isDirty={isDirty} onKeep={onClose}>
      <ErrorNote error={error} onRetry={reload} />
      {source !== null && !data && !error && <p class="empty">Loading…</p>}
      {(source === null || data) && (
        <OpenRecord
          id={id}
          loaded={data}
          onClose={onClose}
          onChange={onChange}
          onDirty={(now, discard) => {
            setDirty(now);
            forget.current = discard;
          }}
          {...rest}
        />
      )}
    </Drawer>
  );
}

function OpenRecord({
  id,
  loaded,
  onClose,
  onChange,
  onDirty,
  ...at
}: Props & {
  loaded: ShownFields | null;
  /** Whether something is typed that is not stored, and how to forget it. */
  onDirty: (isDirty: boolean, forget: () => void) => void;
}) {
  const { base } = at;
  const record = useRecord({
    base,
    id,
    loaded,
    onSaved() {
      onChange();
      onClose();
    },
  });
  const { stored, theirs, change, busy, isChanged, wasKept } = record;
  const isTrashed = stored?.isDeleted === true;
  const isFixed = !mayChange.value || isTrashed;
  const tabs = RECORD_TABS.filter(({ ofStored }) => stored !== null || !ofStored);
  const tab = tabs.find(({ name }) => name === place.value.query.get('tab')) ?? tabs[0]!;
  const { View } = tab;
  const isDirty = isChanged && !isFixed;
  useLayoutEffect(() => onDirty(isDirty, record.forget), [isDirty]);
  return (
    <>
      <div class="record" data-kept="">
        <Tabs
          label="Views of the document"
          current={tab.name}
          tabs={tabs.map(({ name, label }, at) => [name, label, linkHere({ tab: at === 0 ? null : name })])}
        />
        {wasKept && isChanged && (
          <p class="kept" role="status">
            What you typed before is still here. <button onClick={() => record.reset()}>Discard it</button>
          </p>
        )}
        <View record={record} isFixed={isFixed} {...at} />
        {record.problem !== null && <p class="bad">{record.problem}</p>}
        {record.lost !== null && (
          <p class="bad">{record.lost} has more digits than a number of JSON keeps: write it as a text.</p>
        )}
        <ErrorNote error={record.error} />
        {stored && theirs && (
          <Conflict
            stored={stored}
            theirs={theirs}
            mine={change}
            busy={busy || record.problem !== null || record.lost !== null}
            onKeep={() => void record.save()}
            onTake={() => record.reset(theirs)}
          />
        )}
      </div>
      {stored && (
        <p class="muted">
          Created {moment(stored.createdAt)}, changed {moment(stored.updatedAt)}
          {isTrashed && `, in the trash since ${moment(stored.deletedAt)}`}
        </p>
      )}
      <Commands of={() => requestsOf(base, record)} />
      <Foot base={base} record={record} isTrashed={isTrashed} onChange={onChange} onClose={onClose} />
    </>
  );
}

/** What can be done with the record: always visible. */
function Foot({
  base,
  record,
  isTrashed,
  onChange,
  onClose,
}: {
  base: DocumentsPath;
  record: EditedRecord;
  isTrashed: boolean;
  onChange: () => void;
  onClose: () => void;
}) {
  const { stored, theirs } = record;
  const [isErasing, setErasing] = useState(false);
  const id = stored?._id ?? '';
  const path = below(base, '/{document}', { document: id });
  const act = async (recover: boolean): Promise<void> => {
    try {
      await (recover ? call('PATCH', below(path, '/recover')) : call('DELETE', path));
      say(recover ? 'Document restored' : 'Document moved to the trash', { undo: () => void act(!recover) });
      onChange();
      onClose();
    } catch (refusal) {
      showError(refusal);
    }
  };
  return (
    <div class="foot">
      {mayChange.value && stored && (
        <button onClick={() => void act(isTrashed)}>{isTrashed ? 'Take back' : 'Move to the trash'}</button>
      )}
      {mayChange.value && stored && isTrashed && (
        <button class="danger" onClick={() => setErasing(true)}>
          Delete permanently…
        </button>
      )}
      {mayChange.value && stored && (
        <a class="button" href={linkHere({ open: 'new', from: id, tab: null })}>
          Duplicate…
        </a>
      )}
      {mayChange.value && !isTrashed && !theirs && (
        <button class="primary end" disabled={!record.canSave} onClick={() => void record.save()}>
          {stored ? 'Save' : 'Insert'}
        </button>
      )}
      {isErasing && (
        <Confirm
          title="Delete the document permanently"
          text="This cannot be undone."
          name={id.slice(-4)}
          action="Delete permanently"
          request={prepare('DELETE', path, { query: { permanent: true } })}
          done="Document deleted permanently"
          onClose={() => setErasing(false)}
          onDone={() => {
            onChange();
            onClose();
          }}
        />
      )}
    </div>
  );
}

/** What the record's buttons send. */
function requestsOf(base: DocumentsPath, { stored, fields, change, isSame }: EditedRecord): Prepared[] {
  if (!stored) return [prepare('POST', base, { body: fields })];
  const path = below(base, '/{document}', { document: stored._id });
  const headers = { 'if-match': `"${String(stored.updatedAt)}"` };
  return [
    isSame ? prepare('GET', path) : prepare('PATCH', path, { body: change, headers }),
    stored.isDeleted ? prepare('PATCH', below(path, '/recover')) : prepare('DELETE', path),
  ];
}

/** A document that changed while it was being edited: both versions, field by field. */
function Conflict({
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
      before: writeValue(stored[name]),
      theirs: writeValue(theirs[name]),
      mine: Object.hasOwn(mine, name) ? writeValue(mine[name] ?? undefined) : null,
    }))
    .filter((row) => row.mine !== null || row.theirs !== row.before);
  return (
    <section class="conflict" role="alert" aria-label="Changed meanwhile">
      <p>
        <b>Someone else changed this document</b> {moment(theirs.updatedAt)}, while you were editing it.
        {theirs.isDeleted === true && ' It is in the trash now.'} Nothing of yours is stored yet.
      </p>
      <Table
        label="Both versions"
        loading={false}
        rows={rows}
        keyOf={({ name }) => name}
        empty="No field differs."
        columns={[
          { name: 'Field', kind: 'head', show: ({ name }) => name },
          { name: 'As you opened it', show: ({ before }) => before },
          {
            name: 'Stored now',
            show: ({ before, theirs: now }) => (now === before ? <span class="muted">the same</span> : <b>{now}</b>),
          },
          {
            name: 'Yours',
            show: (row) => (row.mine === null ? <span class="muted">not changed</span> : <b>{row.mine}</b>),
          },
        ]}
      />
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
