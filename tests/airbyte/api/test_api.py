"""All that orchestrators do with the SDK: from a token to a job that has ended."""

import datetime
import json
import subprocess
import unittest

import airbyte_api
import os
import requests
from airbyte_api import api, models

from windlass import (
    API, URL, WORKSPACE, Launcher, call, client, complete, connection, counted, destination, fail, job,
    native, refused, source, sync, take, unique, until, workspace,
)


class Doors(unittest.TestCase):
    def test_health(self):
        self.assertEqual(client.health.get_health_check().status_code, 200)

    def test_a_token_for_client_credentials(self):
        for token_url in [API + "/applications/token", "/applications/token"]:
            security = models.Security(
                client_credentials=models.SchemeClientCredentials(
                    client_id=unique("me"), client_secret="s", token_url=token_url
                )
            )
            mine = airbyte_api.AirbyteAPI(server_url=API, security=security)
            found = mine.workspaces.list_workspaces(api.ListWorkspacesRequest())
            self.assertGreaterEqual(len(found.workspaces_response.data), 1)

    def test_a_token_for_json(self):
        body = {"client_id": "me", "client_secret": "s"}
        for prefix in [API, URL + "/api/v1"]:
            answer = requests.post(prefix + "/applications/token", json=body, timeout=30)
            self.assertIn("access_token", answer.json())

    def test_user_and_password(self):
        security = models.Security(basic_auth=models.SchemeBasicAuth(username="u", password="p"))
        mine = airbyte_api.AirbyteAPI(server_url=API, security=security)
        self.assertEqual(mine.health.get_health_check().status_code, 200)


class Things(unittest.TestCase):
    def test_workspaces(self):
        made = workspace()
        request = api.UpdateWorkspaceRequest(
            workspace_id=made, workspace_update_request=models.WorkspaceUpdateRequest(name="new")
        )
        changed = client.workspaces.update_workspace(request).workspace_response
        self.assertEqual((changed.name, changed.data_residency), ("new", "auto"))
        get = api.GetWorkspaceRequest(workspace_id=made)
        self.assertEqual(client.workspaces.get_workspace(get).workspace_response, changed)
        listed = client.workspaces.list_workspaces(api.ListWorkspacesRequest(workspace_ids=[made]))
        self.assertEqual(listed.workspaces_response.data, [changed])
        client.workspaces.delete_workspace(api.DeleteWorkspaceRequest(workspace_id=made))
        problem = refused(lambda: client.workspaces.get_workspace(get), 404)
        self.assertEqual(problem["title"], "resource-not-found")
        self.assertEqual(problem["data"]["resourceId"], made)

    def test_sources(self):
        at = workspace()
        made = source(at)
        self.assertEqual((made.source_type, made.workspace_id), ("faker", at))
        listed = client.sources.list_sources(api.ListSourcesRequest(workspace_ids=[at]))
        self.assertEqual([found.source_id for found in listed.sources_response.data], [made.source_id])
        request = api.PatchSourceRequest(
            source_id=made.source_id, source_patch_request=models.SourcePatchRequest(name="other")
        )
        self.assertEqual(client.sources.patch_source(request).source_response.name, "other")
        request = api.PutSourceRequest(
            source_id=made.source_id,
            source_put_request=models.SourcePutRequest(
                name="third", configuration=models.SourceFaker(count=7)
            ),
        )
        self.assertEqual(client.sources.put_source(request).source_response.name, "third")
        raw = call("GET", f"/sources/{made.source_id}", 200).json()
        self.assertEqual(raw["configuration"]["count"], 7)
        client.sources.delete_source(api.DeleteSourceRequest(source_id=made.source_id))
        get = api.GetSourceRequest(source_id=made.source_id)
        refused(lambda: client.sources.get_source(get), 404)

    def test_a_secret_is_not_shown(self):
        body = {
            "name": "s", "workspaceId": WORKSPACE,
            "configuration": {"sourceType": "file", "provider": {"password": "hunter2"}},
        }
        made = call("POST", "/sources", 200, json=body)
        self.assertNotIn("hunter2", made.text)
        self.assertEqual(made.json()["configuration"]["provider"]["password"], "**********")
        source_id = made.json()["sourceId"]
        kept = native("GET", f"/documents/airbyte.source/{source_id}").text
        self.assertNotIn("hunter2", kept)
        self.assertIn("$sealed", kept)

    def test_destinations_and_definitions(self):
        at = workspace()
        made = destination(at)
        self.assertEqual(made.destination_type, "dev-null")
        listed = client.destination_definitions.list_destination_definitions(
            api.ListDestinationDefinitionsRequest(workspace_id=at)
        )
        definitions = listed.definitions_response.data
        self.assertEqual([found.id for found in definitions], [made.definition_id])
        sources = client.source_definitions.list_source_definitions(
            api.ListSourceDefinitionsRequest(workspace_id=at)
        ).definitions_response.data
        self.assertIn("airbyte/source-faker", [found.docker_repository for found in sources])
        create = api.CreateSourceDefinitionRequest(
            workspace_id=at,
            create_definition_request=models.CreateDefinitionRequest(
                name="Mine", docker_repository="me/source-mine", docker_image_tag="1"
            ),
        )
        mine = client.source_definitions.create_source_definition(create).definition_response
        get = api.GetSourceDefinitionRequest(workspace_id=at, definition_id=mine.id)
        self.assertEqual(client.source_definitions.get_source_definition(get).definition_response, mine)
        delete = api.DeleteSourceDefinitionRequest(workspace_id=at, definition_id=mine.id)
        gone = client.source_definitions.delete_source_definition(delete).definition_response
        self.assertEqual(gone, mine)
        client.destinations.delete_destination(
            api.DeleteDestinationRequest(destination_id=made.destination_id)
        )

    def test_connections(self):
        at = workspace()
        streams = models.StreamConfigurationsInput(
            streams=[
                models.StreamConfiguration(
                    name="users",
                    sync_mode=models.ConnectionSyncModeEnum.INCREMENTAL_APPEND,
                    cursor_field=["updated_at"],
                )
            ]
        )
        made = connection(
            at,
            configurations=streams,
            schedule=models.AirbyteAPIConnectionSchedule(
                schedule_type=models.ScheduleTypeEnum.CRON, cron_expression="0 0 12 * * ?"
            ),
            namespace_definition=models.NamespaceDefinitionEnum.SOURCE,
        )
        self.assertEqual(made.schedule.cron_expression, "0 0 12 * * ?")
        self.assertEqual(made.configurations.streams[0].name, "users")
        scheduled = native("GET", f"/schedules/airbyte.{made.connection_id}").json()
        self.assertEqual(scheduled["owner"], "airbyte")
        request = api.PatchConnectionRequest(
            connection_id=made.connection_id,
            connection_patch_request=models.ConnectionPatchRequest(
                status=models.ConnectionStatusEnum.INACTIVE, prefix="p_"
            ),
        )
        changed = client.connections.patch_connection(request).connection_response
        self.assertEqual((changed.status, changed.prefix), (models.ConnectionStatusEnum.INACTIVE, "p_"))
        listed = client.connections.list_connections(api.ListConnectionsRequest(workspace_ids=[at]))
        self.assertEqual(listed.connections_response.data, [changed])
        refused(lambda: sync(made.connection_id), 409)
        client.connections.delete_connection(
            api.DeleteConnectionRequest(connection_id=made.connection_id)
        )
        get = api.GetConnectionRequest(connection_id=made.connection_id)
        refused(lambda: client.connections.get_connection(get), 404)

    def test_streams(self):
        made = source()
        stream = {
            "name": "users", "json_schema": {"properties": {"id": {}}},
            "supported_sync_modes": ["full_refresh", "incremental"],
        }

        def discover(taken):
            source_id = taken["payload"]["sourceId"]
            kept = {
                "sourceId": source_id, "configurationVersion": 1, "catalog": {"streams": [stream]},
            }
            document = {"kind": "airbyte.catalog", "id": source_id, "value": kept}
            complete(taken, documents=[document])

        request = api.GetStreamPropertiesRequest(source_id=made.source_id)
        with Launcher("airbyte.discover", do=discover):
            found = client.streams.get_stream_properties(request).stream_properties_response
        self.assertEqual([one.stream_name for one in found], ["users"])
        self.assertIn(models.ConnectionSyncModeEnum.INCREMENTAL_APPEND, found[0].sync_modes)
        # Now it is known.
        again = client.streams.get_stream_properties(request).stream_properties_response
        self.assertEqual(again, found)


class Jobs(unittest.TestCase):
    def test_a_sync_succeeds(self):
        made = sync(connection().connection_id)
        self.assertEqual(made.status, models.JobStatusEnum.PENDING)
        [taken] = take("airbyte.sync")
        self.assertEqual(taken["payload"]["jobType"], "sync")
        until(made.job_id, "running")
        complete(taken, documents=[counted(taken, 10, 1_000)])
        done = until(made.job_id, "succeeded")
        self.assertEqual((done.rows_synced, done.bytes_synced), (10, 1_000))
        self.assertTrue(done.duration.startswith("PT"))
        self.assertIsNotNone(done.last_updated_at)

    def test_a_sync_is_tried_again_and_fails(self):
        made = sync(connection().connection_id)
        [taken] = take("airbyte.sync")
        fail(taken, progressed=True)
        until(made.job_id, "incomplete")
        [taken] = take("airbyte.sync")
        self.assertEqual(taken["attempt"], 2)
        fail(taken, permanent=True)
        until(made.job_id, "failed")

    def test_one_at_a_time(self):
        at = connection().connection_id
        made = sync(at)
        problem = refused(lambda: sync(at), 409)
        self.assertEqual(problem["title"], "try-again-later")
        cancelled = client.jobs.cancel_job(api.CancelJobRequest(job_id=made.job_id)).job_response
        self.assertEqual(cancelled.status, models.JobStatusEnum.CANCELLED)
        cancel = api.CancelJobRequest(job_id=made.job_id)
        self.assertEqual(refused(lambda: client.jobs.cancel_job(cancel), 409)["title"], "state-conflict")
        refresh = models.JobCreateRequest(connection_id=at, job_type=models.JobTypeEnum.REFRESH)
        refused(lambda: client.jobs.create_job(refresh), 422)
        clear = models.JobCreateRequest(connection_id=at, job_type=models.JobTypeEnum.CLEAR)
        made = client.jobs.create_job(clear).job_response
        self.assertEqual(made.job_type, models.JobTypeEnum.CLEAR)
        client.jobs.cancel_job(api.CancelJobRequest(job_id=made.job_id))

    def test_a_running_sync_is_cancelled(self):
        made = sync(connection().connection_id)

        def obey(taken):
            path = f"/jobs/{taken['key']}/extend"
            body = {"activation": taken["activation"], "lease_ms": 60_000}
            while not native("POST", path, json=body).json()["cancel_asked"]:
                pass
            complete(taken)

        with Launcher("airbyte.sync", do=obey):
            until(made.job_id, "running")
            cancel = api.CancelJobRequest(job_id=made.job_id)
            ended = client.jobs.cancel_job(cancel).job_response
        self.assertEqual(ended.status, models.JobStatusEnum.CANCELLED)

    def test_lists(self):
        at = workspace()
        one = connection(at).connection_id
        made = []
        for _ in range(3):
            asked = sync(one)
            [taken] = take("airbyte.sync")
            complete(taken)
            until(asked.job_id, "succeeded")
            made.append(asked.job_id)
        live = sync(connection(at).connection_id)

        def ids(**filters):
            request = api.ListJobsRequest(workspace_ids=[at], **filters)
            return [found.job_id for found in client.jobs.list_jobs(request).jobs_response.data]

        self.assertEqual(ids(), [live.job_id, *reversed(made)])
        self.assertEqual(ids(order_by="createdAt|ASC", limit=2), made[:2])
        self.assertEqual(ids(limit=2, offset=1), [made[2], made[1]])
        self.assertEqual(ids(connection_id=one, status=models.JobStatusEnum.SUCCEEDED), made[::-1])
        self.assertEqual(ids(job_type=models.JobTypeEnum.RESET), [])
        now = datetime.datetime.now(datetime.timezone.utc)
        hour = datetime.timedelta(hours=1)
        self.assertEqual(ids(created_at_start=now + hour), [])
        self.assertEqual(len(ids(created_at_start=now - hour, updated_at_end=now + hour)), 4)
        client.jobs.cancel_job(api.CancelJobRequest(job_id=live.job_id))

    def test_the_end_of_an_interval(self):
        body = {
            "sourceId": source().source_id, "destinationId": destination().destination_id,
            "schedule": {"scheduleType": "basic", "units": 1, "timeUnit": "hours"},
        }
        made = call("POST", "/connections", 200, json=body).json()
        self.assertEqual(made["schedule"]["basicTiming"], "Every 1 HOURS")
        [taken] = take("airbyte.sync")
        self.assertEqual(taken["payload"]["connectionId"], made["connectionId"])
        complete(taken)
        until(int(taken["key"]), "succeeded")
        get = api.GetConnectionRequest(connection_id=made["connectionId"])
        shown = client.connections.get_connection(get).connection_response
        self.assertEqual(shown.schedule.schedule_type, models.ScheduleTypeWithBasicEnum.BASIC)


if __name__ == "__main__":
    unittest.main()
