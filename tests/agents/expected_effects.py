"""The effect of every tool that the shipped manifests allow, judged by hand from the servers' code and descriptions."""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.approvals.effects import Effect

EXPECTED: Final[dict[str, dict[Effect, str]]] = {
    "argocd.argocd": {
        "read": "list_applications get_application get_application_events get_application_managed_resources "
        "get_application_resource_tree get_application_workload_logs get_appproject get_resource_actions "
        "get_resource_events get_resources list_clusters",
        "write": "sync_application",
        "destructive": "run_resource_action",
    },
    "aws.eks": {
        "read": "list_k8s_resources list_api_versions manage_k8s_resource get_eks_insights get_eks_vpc_config "
        "get_eks_metrics_guidance get_cloudwatch_metrics get_policies_for_role search_eks_troubleshoot_guide",
    },
    "aws.cloudwatch": {
        "read": "describe_log_groups analyze_log_group execute_log_insights_query get_logs_insight_query_results "
        "get_metric_data get_metric_metadata analyze_metric get_active_alarms get_alarm_history "
        "get_recommended_metric_alarms",
        "write": "cancel_logs_insight_query",
    },
    "confluence.confluence": {
        "read": "confluence_search confluence_get_page confluence_get_page_children confluence_get_space_page_tree "
        "confluence_get_page_history confluence_get_page_diff confluence_get_comments confluence_get_labels "
        "confluence_search_user",
        "write": "confluence_create_page confluence_add_comment",
        "destructive": "confluence_update_page confluence_update_page_section",
    },
    "github.github": {
        "read": "get_me search_repositories get_file_contents list_branches list_commits get_commit list_releases "
        "get_latest_release list_issues issue_read search_issues list_pull_requests pull_request_read "
        "search_pull_requests search_code",
        "write": "issue_write add_issue_comment create_pull_request create_repository create_branch",
        "destructive": "merge_pull_request",
    },
    "gitlab.gitlab": {
        "read": "whoami list_projects search_repositories get_project get_file_contents list_branches list_commits "
        "get_commit my_issues list_issues get_issue list_issue_discussions list_merge_requests get_merge_request "
        "list_merge_request_changed_files get_merge_request_file_diff get_merge_request_notes list_pipelines "
        "get_pipeline list_pipeline_jobs get_pipeline_job get_pipeline_job_output",
        "write": "create_issue create_issue_note create_merge_request create_merge_request_note",
    },
    "jira.jira": {
        "read": "jira_search jira_get_issue jira_get_all_projects jira_search_projects jira_get_project_issues "
        "jira_get_project_issue_types jira_get_create_fields jira_get_transitions jira_get_agile_boards "
        "jira_get_sprints_from_board jira_get_sprint_issues jira_get_user_profile jira_search_assignable_users",
        "write": "jira_create_issue jira_add_comment jira_assign_issue",
        "destructive": "jira_update_issue jira_transition_issue",
    },
    "komodor.komodor": {
        "read": "get_clusters get_services_by get_service_yaml get_health_risks get_health_risk_data "
        "get_klaudia_rca_results",
        "write": "trigger_klaudia_rca",
    },
    "kubernetes.kubernetes": {
        "read": "namespaces_list events_list pods_list pods_list_in_namespace pods_get pods_log pods_top nodes_top "
        "nodes_log nodes_stats_summary resources_list resources_get",
    },
    "netutils.netutils": {
        "read": "dns_lookup reverse_lookup check_port certificate_expiry http_check subnet_info plan_subnets",
    },
    "pagerduty.pagerduty": {
        "read": "list_incidents get_incident list_incident_notes list_alerts_from_incident list_incident_change_events "
        "get_past_incidents get_related_incidents list_log_entries list_oncalls list_schedules get_schedule "
        "list_schedule_users list_escalation_policies list_services get_service list_teams list_users get_user_data",
        "write": "add_note_to_incident",
        "destructive": "create_incident manage_incidents",
    },
    "splunk.splunk": {
        "read": "search_splunk list_indexes get_index_info get_field_summary list_saved_searches get_saved_search "
        "list_alerts get_alert_history list_dashboards get_dashboard list_sourcetypes get_server_info",
    },
    "webex.webex": {
        "read": "get_webex_me list_webex_rooms get_webex_room list_webex_messages list_webex_people "
        "list_webex_memberships",
        "write": "send_webex_message",
    },
}

MILDER_THAN_ANNOTATED: Final = {"add_note_to_incident": "a note is only added; the server calls all of its writes so"}
"""Tools whose server states a more severe effect than the manifest, each with the reason."""


def expected(server: str) -> dict[str, Effect]:
    return {tool: effect for effect, tools in EXPECTED[server].items() for tool in tools.split()}
