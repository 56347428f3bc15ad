import { useEffect, useRef } from 'preact/hooks';
import { below } from '../api-paths.js';
import { USERS } from '../collection.js';
import { useLoad } from '../load.js';
import { ErrorNote } from '../parts/basics.js';
import { NameChoice } from '../parts/form.js';
import { Empty, PageHead } from '../parts/page-head.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';
import { mayChange, projectPath, keepSetting, readSetting } from '../session.js';
import { Browser } from './grid/browser.js';
import { ImportDrawer } from './import/import-documents.js';
import { RecordDrawer } from './record/record.js';

export function Documents() {
  const { parts, query } = place.value;
  const [, id = '', , name] = parts;
  const base = below(projectPath(), '/collections');
  const list = useLoad(base);
  const collections = list.data?.items ?? [];
  const listed = collections.filter((each) => each.name !== USERS);
  const last = `documents ${id}`;
  const wanted = name ?? readSetting<string>(last);
  const collection = listed.find((each) => each.name === wanted) ?? (name === undefined ? listed[0] : undefined);
  useEffect(() => {
    if (name !== undefined) keepSetting(last, name);
  }, [last, name]);
  const reloadPage = useRef<(() => void) | null>(null);
  const open = query.get('open');
  const isImporting = query.get('import') !== null && mayChange.value;
  const onChange = (): void => reloadPage.current?.();
  return (
    <>
      <PageHead title="Documents">
        {listed.length > 0 && (
          <NameChoice
            label="Collection"
            value={collection?.name}
            names={listed.map((each) => [each.name, each.name])}
            unchosen="Choose a collection"
            onChange={(chosen) => goTo(linkTo(['p', id, 'documents', chosen]))}
          />
        )}
        {collection && (
          <a href={linkTo(['p', id, 'collections'], { open: collection.name, edit: mayChange.value ? '1' : null })}>
            Schema
          </a>
        )}
        {collection && mayChange.value && (
          <a class="button" href={linkHere({ import: '1' })}>
            Import…
          </a>
        )}
        {collection && mayChange.value && (
          <a class="button primary" href={linkHere({ open: 'new' })}>
            New document
          </a>
        )}
      </PageHead>
      <ErrorNote error={list.error} onRetry={list.reload} />
      {list.data && listed.length === 0 && (
        <Empty title="No collections yet">
          {mayChange.value && <a href={linkTo(['p', id, 'collections'], { new: '1' })}>Create your first collection</a>}
        </Empty>
      )}
      {list.data && name !== undefined && !collection && <p class="empty">There is no collection {name}.</p>}
      {collection && (
        <Browser
          key={collection.name}
          base={base}
          collection={collection}
          collections={collections}
          onReady={(reload) => (reloadPage.current = reload)}
        />
      )}
      {collection && open && (
        <RecordDrawer
          key={`${open} ${query.get('from') ?? ''}`}
          base={below(base, '/{collection}/documents', { collection: collection.name })}
          collection={collection}
          collections={collections}
          id={open}
          onChange={onChange}
          onClose={() => goTo(linkHere({ open: null, from: null, tab: null }))}
        />
      )}
      {collection && isImporting && (
        <ImportDrawer
          base={below(base, '/{collection}/documents', { collection: collection.name })}
          collection={collection}
          onChange={onChange}
          onClose={() => goTo(linkHere({ import: null }))}
        />
      )}
    </>
  );
}
