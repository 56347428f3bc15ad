import { useState } from 'preact/hooks';
import { api } from '../../api.js';
import { howMany, number } from '../../format.js';
import { useLoad } from '../../load.js';
import { Copy, Dialog, say, Trouble } from '../../parts/basics.js';
import { Commands, projectWord } from '../../parts/commands.js';
import { Confirm } from '../../parts/confirm.js';
import { Table } from '../../parts/table.js';
import { Usage } from '../../parts/usage.js';
import { goTo, linkHere, place } from '../../routes.js';
import { loadProjects, mayChange, projects } from '../../session.js';
import { Keys } from './keys.js';
import { ProjectEditor, type Details } from './project-edit.js';

export function Settings() {
  const { parts, query } = place.value;
  const id = parts[1] ?? '';
  const base = `/api/projects/${id}`;
  const details = useLoad<Details>(base);
  const [isDeleting, setDeleting] = useState(false);
  const close = (): void => goTo(linkHere({ edit: null }));
  const { data } = details;
  return (
    <>
      <h1>Keys and project</h1>
      <Trouble error={details.error} onRetry={details.reload} />
      {data && <Pairs details={data} />}
      {data && mayChange.value && (
        <p class="row">
          <a href={linkHere({ edit: '1' })}>Edit the project…</a>
          <button class="danger" onClick={() => setDeleting(true)}>
            Delete the project…
          </button>
        </p>
      )}
      <Commands
        name="Show"
        cli={`bsvc project show ${projectWord()}`}
        path={base}
        more={
          mayChange.value
            ? [{ name: 'Delete', cli: `bsvc project delete ${projectWord()}`, method: 'DELETE', path: base }]
            : []
        }
      />
      <Keys base={`${base}/keys`} />
      <UsageOf base={base} />
      {data && query.get('edit') === '1' && mayChange.value && (
        <Dialog title={`Edit ${data.name}`} onClose={close}>
          <ProjectEditor
            path={base}
            stored={data}
            onSaved={() => {
              details.reload();
              void loadProjects();
              close();
            }}
          />
        </Dialog>
      )}
      {data && isDeleting && (
        <Confirm
          title="Delete the project"
          text="For good, with all its documents, users and files."
          name={data.name}
          asksPassword
          action="Delete the project"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await api('DELETE', base);
            say('The project is deleted');
            projects.value = projects.value.filter((each) => each.id !== id);
            goTo('#/');
          }}
        />
      )}
    </>
  );
}

function Pairs({ details: { name, id, plan, allowedDomains, limits } }: { details: Details }) {
  const own = Object.entries(limits).map(([limit, value]) => `${limit} ${number(value)}`);
  return (
    <dl class="pairs">
      <dt>Name</dt>
      <dd>{name}</dd>
      <dt>Id</dt>
      <dd>
        <code>{id}</code> <Copy text={id} what="Id" />
      </dd>
      <dt>Plan</dt>
      <dd>{plan}</dd>
      <dt>Own limits</dt>
      <dd>{own.join(', ') || 'none'}</dd>
      <dt>Allowed domains</dt>
      <dd>{allowedDomains.join(', ') || 'none'}</dd>
    </dl>
  );
}

interface ProjectUsage {
  documents: number;
  collections: { name: string; documents: number; trashed: number; bytes: number }[];
  storage: { files: number; bytes: number; limit: number | null };
  mail: { used: number; limit: number | null };
  webhooks: number;
  limits: { webhooks: number | null; database: number | null };
}

/** Counts every collection, so only when somebody asks. */
function UsageOf({ base }: { base: string }) {
  const [asked, setAsked] = useState(false);
  const { data, error, loading, reload } = useLoad<ProjectUsage>(asked ? `${base}/usage` : null);
  return (
    <>
      <h2>Usage</h2>
      {!asked && <button onClick={() => setAsked(true)}>Count what it uses</button>}
      <Trouble error={error} onRetry={reload} />
      {asked && !data && loading && <p class="empty">Counting…</p>}
      {data && (
        <>
          <div class="usages">
            <Usage
              name={howMany(data.documents, 'document')}
              used={data.collections.reduce((sum, { bytes }) => sum + bytes, 0)}
              limit={data.limits.database}
            />
            <Usage name={howMany(data.storage.files, 'file')} used={data.storage.bytes} limit={data.storage.limit} />
            <Usage name="Mails of this month" used={data.mail.used} limit={data.mail.limit} isCount />
            <Usage name="Webhooks" used={data.webhooks} limit={data.limits.webhooks} isCount />
          </div>
          <Table
            label="Documents by collection"
            loading={false}
            rows={data.collections}
            keyOf={({ name }) => name}
            empty="No collections."
            columns={[
              { name: 'Collection', show: ({ name }) => name },
              { name: 'Documents', isNumber: true, show: ({ documents }) => number(documents) },
              { name: 'In the trash', isNumber: true, show: ({ trashed }) => number(trashed) },
            ]}
          />
        </>
      )}
      <Commands cli={`bsvc project usage ${projectWord()}`} path={`${base}/usage`} />
    </>
  );
}
