import { useState } from 'preact/hooks';
import { prepare } from '../api.js';
import { below, type Address } from '../api-paths.js';
import { howMany, moment, number } from '../format.js';
import { useLoad } from '../load.js';
import { Copy, ErrorNote } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Confirm } from '../parts/confirm.js';
import { PageHead, Pairs, Usage } from '../parts/page-head.js';
import { Table } from '../parts/table.js';
import { goTo, linkHere, place } from '../routes.js';
import { mayChange, projectPath, projects } from '../session.js';
import { ProjectEditor } from './project-edit.js';

/** Settings and usage of a project. */
export function ProjectSettings() {
  const base = projectPath();
  const { data, error, reload } = useLoad(base);
  const [isDeleting, setDeleting] = useState(false);
  return (
    <>
      <PageHead title="Project">
        {data && mayChange.value && (
          <>
            <button class="danger" onClick={() => setDeleting(true)}>
              Delete the project…
            </button>
            <a class="button primary" href={linkHere({ edit: '1' })}>
              Edit the project…
            </a>
          </>
        )}
      </PageHead>
      <ErrorNote error={error} onRetry={reload} />
      {data && (
        <Pairs
          of={{
            Name: data.name,
            Id: (
              <>
                <code>{data.id}</code> <Copy text={data.id} what="Id" />
              </>
            ),
            Plan: data.plan,
            'Own limits':
              Object.entries(data.limits)
                .map(([limit, value]) => `${limit} ${number(value)}`)
                .join(', ') || 'none',
            'Allowed domains': data.allowedDomains.join(', ') || 'none',
            'Uploads by apps': data.storage.publishableUploads ? 'publishable keys may upload' : 'secret keys alone',
            Created: moment(data.createdAt),
          }}
        />
      )}
      <Commands of={[prepare('GET', base)]} />
      <ProjectUsage base={base} />
      {data && place.value.query.get('edit') === '1' && mayChange.value && (
        <ProjectEditor path={base} stored={data} onClose={() => goTo(linkHere({ edit: null }))} />
      )}
      {data && isDeleting && (
        <Confirm
          title="Delete the project"
          text="This permanently deletes its documents, users and files."
          name={data.name}
          asksPassword
          request={prepare('DELETE', base)}
          done="The project is deleted"
          onClose={() => setDeleting(false)}
          onDone={() => {
            projects.value = projects.value.filter((each) => each.id !== data.id);
            goTo('#/');
          }}
        />
      )}
    </>
  );
}

/** Counts every collection, so only on request. */
function ProjectUsage({ base }: { base: Address<'/api/projects/{projectId}'> }) {
  const path = below(base, '/usage');
  const [asked, setAsked] = useState(false);
  const { data, error, loading, reload } = useLoad(asked ? path : null);
  return (
    <>
      <h2>Usage</h2>
      {!asked && <button onClick={() => setAsked(true)}>Show usage</button>}
      <ErrorNote error={error} onRetry={reload} />
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
            <Usage name="Emails this month" used={data.mail.used} limit={data.mail.limit} isCount />
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
              { name: 'Documents', kind: 'number', show: ({ documents }) => number(documents) },
              { name: 'In the trash', kind: 'number', show: ({ trashed }) => number(trashed) },
            ]}
          />
        </>
      )}
      <Commands of={[prepare('GET', path)]} />
    </>
  );
}
